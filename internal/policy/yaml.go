package policy

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// compose turns the text into the node of its one document; nil without a
// finding is an empty document. The YAML library stops at the first error of
// syntax, so there is at most one.
func compose(src source) (*yaml.Node, *Diagnostic) {
	if d := src.readable(); d != nil {
		return nil, d
	}
	loader, err := yaml.NewLoader(bytes.NewReader(src.text))
	if err != nil {
		return nil, &Diagnostic{Message: "the file cannot be read as YAML"}
	}
	var document, second yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(src, err)
	}
	if err := loader.Load(&second); err == nil {
		return nil, &Diagnostic{Span: src.clamp(second.Line, second.Column), Message: "a second document starts here", Help: "a policy is one document: remove the --- between"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(src, err)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

// syntaxError says in plain words what the YAML library found, and where.
func syntaxError(src source, err error) *Diagnostic {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return &Diagnostic{Message: "this is not valid YAML"}
	}
	d := &Diagnostic{Span: src.clamp(load.Mark.Line, load.Mark.Column), Message: "this is not valid YAML"}
	start := src.clamp(load.ContextMark.Line, load.ContextMark.Column)
	has := func(s string) bool { return strings.Contains(load.Message, s) }
	switch next := src.tail(d.Line, d.Column); {
	case strings.HasPrefix(next, "\t") || has("tab character") || has("spaces and tabs") || has("indentation style"):
		d.Message, d.Help = "a tab cannot indent a line", "use spaces"
	case has("mapping values are not allowed"):
		d.Message, d.Help = `a ":" makes no sense here`, "check the indentation of this line, or put the text in quotes"
	case has("expected ',' or ']'"):
		d.Message, d.Help = `expected "," or "]"`, ""
		d.Related = []Related{{start, "the list starts here"}}
	case has("expected ',' or '}'"):
		d.Message, d.Help = `expected "," or "}"`, ""
		d.Related = []Related{{start, "the braces open here"}}
	case has("expected '-' indicator"):
		d.Message, d.Help = `expected another item with "- "`, "check the indentation of this line"
	case has("did not find expected key"), has("could not find expected ':'"), has("mapping keys are not allowed"):
		d.Message, d.Help = `expected a key with ":" behind it`, "check the indentation of this line"
	case has("block sequence entries are not allowed"):
		d.Message, d.Help = `a "- " makes no sense here`, "start the list on a line of its own"
	case has("unexpected end of stream"), has("unexpected document indicator"):
		d.Span, d.Message = start, "the quote that opens here is never closed"
	case has("escape"), has("hexadecimal"):
		d.Message, d.Help = "there is no such escape in double quotes", `write \\ for a backslash, or use single quotes`
	case has("cannot start any token") && next != "":
		d.Message, d.Help = quote(string([]rune(next)[:1]))+" cannot start a value", "put the value in quotes"
	case has("expected node content"):
		d.Message = "expected a value here"
	case has("unknown anchor"):
		d.Message, d.Help = "aliases are not used in a policy", "write the value out"
	case has("max depth"):
		d.Message = "the nesting is too deep"
	case has("directive"), strings.Contains(load.ContextMsg, "directive"):
		d.Message, d.Help = "directives are not used in a policy", "remove the line, or put the value in quotes"
	case has("expected <document start>"):
		d.Message = "expected the end of the file, or another key"
	case strings.Contains(load.ContextMsg, "tag"), strings.Contains(load.ContextMsg, "anchor"), strings.Contains(load.ContextMsg, "alias"):
		d.Message, d.Help = "anchors, aliases and tags are not used in a policy", "put the value in quotes if it starts with &, * or !"
	}
	return d
}

// clamp makes the place of a YAML error one that exists: an error at the end of
// the file is shown behind its last text.
func (s source) clamp(line, column int) Span {
	if line < 1 {
		return Span{}
	}
	line = min(line, len(s.lines))
	for line > 1 && s.tail(line, column) == "" && strings.TrimSpace(s.line(line)) == "" {
		line--
		column = 1 << 30
	}
	column = max(1, min(column, s.width(line)+1))
	return Span{line, column, line, column + 1}
}
