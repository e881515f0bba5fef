package report

import (
	"strings"
	"testing"
)

func TestSVGUsesThePagesColours(t *testing.T) {
	for _, c := range charts(sample(t).Series) {
		for _, f := range frames {
			drawing, err := c.svg(f)
			if err != nil {
				t.Fatal(err)
			}
			svg := string(drawing)
			if strings.Contains(svg, "#FE") || strings.Contains(svg, "<?xml") {
				t.Errorf("%s: a stand-in colour or the prelude is left", c.title)
			}
			for _, want := range []string{"var(--ink-2)", "var(--rule)", "var(--line-1)", ">time (s)<", ">Mbit/s<", `class="` + f.class} {
				if !strings.Contains(svg, want) {
					t.Errorf("%s, %s: no %s", c.title, f.class, want)
				}
			}
		}
	}
}
