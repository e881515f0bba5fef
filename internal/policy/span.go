package policy

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// after reports that a span starts behind another.
func (s Span) after(other Span) bool {
	return s.Line > other.Line || s.Line == other.Line && s.Column > other.Column
}

// span finds where a node stands. The YAML library knows where nodes start; the
// end is found in the text.
func (s source) span(n *yaml.Node) Span {
	at := Span{n.Line, n.Column, n.Line, n.Column}
	switch {
	case n.Kind == yaml.ScalarNode && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0:
		at.EndColumn += s.scalarWidth(n)
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		if len(n.Content) > 0 {
			last := s.span(n.Content[len(n.Content)-1])
			at.EndLine, at.EndColumn = last.EndLine, last.EndColumn
		} else {
			at.EndColumn++
		}
		if n.Style&yaml.FlowStyle != 0 {
			at.EndLine, at.EndColumn = s.closing(at.EndLine, at.EndColumn)
		}
	default: // an alias, or a value with an anchor or a tag: its first word
		tail := s.tail(n.Line, n.Column)
		if i := strings.IndexAny(tail, " \t,]}"); i >= 0 {
			tail = tail[:i]
		}
		at.EndColumn += utf8.RuneCountInString(tail)
	}
	if at.EndLine == at.Line && at.EndColumn <= at.Column {
		at.EndColumn = at.Column + 1
	}
	return at
}

// scalarWidth is the number of characters that a scalar takes on its first line.
func (s source) scalarWidth(n *yaml.Node) int {
	tail := s.tail(n.Line, n.Column)
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := 1; i < len(tail); i++ {
			if tail[i] != '\'' {
				continue
			}
			if i+1 < len(tail) && tail[i+1] == '\'' {
				i++ // an escaped quote
				continue
			}
			return utf8.RuneCountInString(tail[:i+1])
		}
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := 1; i < len(tail); i++ {
			if tail[i] == '\\' {
				i++
			} else if tail[i] == '"' {
				return utf8.RuneCountInString(tail[:i+1])
			}
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return 1
	case strings.HasPrefix(tail, n.Value):
		return utf8.RuneCountInString(n.Value)
	}
	return utf8.RuneCountInString(strings.TrimRight(tail, " \t")) // goes on in the next line
}

// closing finds the bracket behind the last item of a flow collection, and
// returns the place behind it.
func (s source) closing(line, column int) (int, int) {
	for n := line; n <= len(s.lines); n++ {
		from := 1
		if n == line {
			from = column
		}
		for _, r := range s.tail(n, from) {
			from++
			if r == ']' || r == '}' {
				return n, from
			}
			if r == '#' {
				break
			}
		}
	}
	return line, column
}
