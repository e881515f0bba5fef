package report

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// judged is the sample with a claim of each kind.
func judged(t *testing.T) Result {
	r := sample(t)
	r.Claims = append(r.Claims, Kept("The moon is made of cheese.", false, "it is not"),
		Unproven("Classes are kept in hardware.", "this kernel lacks mqprio"))
	r.Warnings = []string{"the host was busy"}
	return r
}

func TestTableGolden(t *testing.T) {
	for _, width := range []int{40, 72, 120} {
		var b bytes.Buffer
		if err := Table(&b, judged(t), Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", fmt.Sprintf("table-%d.txt", width)), b.Bytes())
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTableColourAddsNothing(t *testing.T) {
	var plain, colour bytes.Buffer
	if err := Table(&plain, judged(t), Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if err := Table(&colour, judged(t), Style{Width: 80, Colour: true}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("escape sequences without colour")
	}
	text := escape.ReplaceAllString(colour.String(), "")
	// Padding within colours may end a line.
	for i, line := range strings.Split(plain.String(), "\n") {
		if got := strings.TrimRight(strings.Split(text, "\n")[i], " "); got != line {
			t.Errorf("line %d: %q without colours, %q with", i, line, got)
		}
	}
	for _, want := range []string{"\x1b[32mok\x1b[0m", "\x1b[1;31mBROKEN\x1b[0m", "\x1b[33mnot provable\x1b[0m"} {
		if !strings.Contains(colour.String(), want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestTableFits(t *testing.T) {
	r := judged(t)
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, 160).Draw(t, "width")
		r.Claims[0].Evidence = rapid.StringMatching(`([a-z]{1,60} ){0,9}`).Draw(t, "evidence")
		r.Arms[0].Name = rapid.StringMatching(`[a-z_]{1,90}`).Draw(t, "arm")
		var b bytes.Buffer
		if err := Table(&b, r, Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(width, minWidth) {
				t.Fatalf("%d columns in a terminal of %d: %q", n, width, line)
			}
		}
	})
}

func TestTableNamesWriteError(t *testing.T) {
	full := errors.New("disk full")
	if err := Table(failing{full}, sample(t), Style{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
