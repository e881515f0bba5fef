package policy

import (
	"regexp"
	"strings"
	"testing"
)

func TestRenderWholeForm(t *testing.T) {
	src := "version: 1\nlinks:\n  eth0: {rate: 500Mbit}\n"
	errs := Errors{
		{Message: "no place at all"},
		{
			Span: Span{3, 16, 3, 23}, Message: "above", Help: "lower it",
			Related: []Related{{Span{1, 10, 1, 11}, "limited here"}, {Span{2, 1, 2, 6}, "and here"}},
		},
		{Span: Span{99, 1, 99, 2}, Message: "behind the end"},
	}
	want := `p.yaml: error: no place at all
p.yaml:3:16-22: error: above
   3 |   eth0: {rate: 500Mbit}
     |                ^^^^^^^
  p.yaml:1:10
   1 | version: 1
     |          ~ limited here (and 1 more)
  help: lower it
p.yaml:99:1: error: behind the end
3 errors
`
	if got := errs.Render("p.yaml", []byte(src), false); got != want {
		t.Errorf("got:\n%s", got)
	}
}

// Colour adds nothing but colour.
func TestRenderColor(t *testing.T) {
	sgr := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, src := range badPolicies(t) {
		_, err := Parse("p.yaml", src)
		errs := err.(Errors)
		colored, text := errs.Render("p.yaml", src, true), errs.Render("p.yaml", src, false)
		if sgr.ReplaceAllString(colored, "") != text {
			t.Errorf("%s: colour changes the text", name)
		}
		if !strings.Contains(colored, "\x1b[1;31merror:\x1b[0m") {
			t.Errorf("%s: no colour", name)
		}
	}
}

// What a user wrote never reaches the terminal as a control sequence.
func TestRenderControlCharacters(t *testing.T) {
	src := []byte("version: 1\nlinks: {\"\\e[31m\": {}, \"a\\nb\": {rate: \"\\u2028\"}}\n")
	_, err := Parse("p.yaml", src)
	text := err.(Errors).Render("p.yaml", src, false)
	if strings.ContainsAny(text, "\x1b\u2028") || strings.Count(text, "\n") != strings.Count(text, "error:")*3+strings.Count(text, "help:")+1 {
		t.Errorf("%q", text)
	}
}

func TestRenderWideLineNumbers(t *testing.T) {
	src := []byte("version: 1\nlinks: {eth0: {}}\n" + strings.Repeat("#\n", 100_000) + "default: {priority: 16}\n")
	_, err := Parse("p.yaml", src)
	text := err.(Errors).Render("p.yaml", src, false)
	want := `p.yaml:100003:21-22: error: priority 16 is out of range
100003 | default: {priority: 16}
       |                     ^^
  help: 0 to 15, and 15 is the highest
1 error
`
	if text != want {
		t.Errorf("got:\n%s", text)
	}
}
