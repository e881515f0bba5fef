package policy

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// source is the text of a policy file, by lines. Lines and columns count from
// 1, columns in characters.
type source struct {
	text  []byte   // without a byte order mark
	lines []string // without their ends
	// Where the characters of a line that is not ASCII start; made when asked
	// for. It keeps a file of one long line, such as JSON, from costing its
	// length for every value.
	offsets map[int][]int
	plain   []bool // the line is printable ASCII
}

func newSource(src []byte) source {
	text := bytes.TrimPrefix(src, []byte("\ufeff"))
	lines := strings.Split(string(text), "\n")
	s := source{text: text, lines: lines, offsets: make(map[int][]int), plain: make([]bool, len(lines))}
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
		s.plain[i] = ascii(lines[i])
	}
	return s
}

// line returns a line by its number, "" if there is none.
func (s source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// offset is where a column of a line starts, in bytes; the end of the line for
// columns behind it.
func (s source) offset(line, column int) int {
	text := s.line(line)
	column = max(column, 1)
	if text == "" || s.plain[line-1] {
		return min(column-1, len(text))
	}
	offsets, made := s.offsets[line]
	if !made {
		for i := range text {
			offsets = append(offsets, i)
		}
		s.offsets[line] = offsets
	}
	if column > len(offsets) {
		return len(text)
	}
	return offsets[column-1]
}

// tail returns what of a line starts at a column.
func (s source) tail(line, column int) string { return s.line(line)[s.offset(line, column):] }

// width is the number of characters of a line.
func (s source) width(line int) int {
	if text := s.line(line); text == "" || s.plain[line-1] {
		return len(text)
	}
	s.offset(line, 1)
	return len(s.offsets[line])
}

// readable finds the characters that a YAML reader would refuse, or take for
// the end of a line where no editor does. Past it, lines and columns of the
// YAML library and of this package are the same.
func (s source) readable() *Diagnostic {
	for n, line := range s.lines {
		if s.plain[n] {
			continue
		}
		column := 0
		for i, r := range line {
			column++
			at := Span{n + 1, column, n + 1, column + 1}
			switch {
			case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
				return &Diagnostic{Span: at, Message: "the text is not UTF-8 from here on", Help: "save the file as UTF-8"}
			case r < ' ' && r != '\t', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029', r == '\ufeff', r == '\ufffe', r == '\uffff':
				return &Diagnostic{Span: at, Message: "a control character stands here: " + quote(string(r)), Help: "remove it"}
			}
		}
	}
	return nil
}

// ascii reports that a line has nothing but printable ASCII and tabs.
func ascii(line string) bool {
	for i := 0; i < len(line); i++ {
		if c := line[i]; c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}
