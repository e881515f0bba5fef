package policy

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestPorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint16Range(1, 65535).Draw(t, "first")
		want := PortRange{first, rapid.Uint16Range(first, 65535).Draw(t, "last")}
		got, err := parsePorts(want.String())
		if err != nil || got != want || got.Count() < 1 {
			t.Fatalf("%+v prints as %q, which is %+v, %v", want, want, got, err)
		}
	})
	for _, text := range []string{"", "0", "65536", "-1", "80-", "-", "90-80", "0-5", "80-90-100", "080", "80:90", "80,90", "http", "99999999999999999999", "80 - 90"} {
		if got, err := parsePorts(text); err == nil {
			t.Errorf("parsePorts(%q) = %+v", text, got)
		}
	}
}

func TestSortPorts(t *testing.T) {
	for _, c := range []struct {
		in    []PortRange
		twice string // the ports, and the number of the range that has them again
	}{
		{[]PortRange{{443, 443}, {80, 80}, {8000, 8099}}, ""},
		{[]PortRange{{81, 90}, {80, 80}}, ""},
		{[]PortRange{{80, 80}, {80, 80}}, "80 1"},
		{[]PortRange{{22, 22}, {80, 90}, {85, 100}}, "85-90 2"},
		{[]PortRange{{85, 90}, {22, 22}, {80, 100}}, "85-90 2"},
		{[]PortRange{{7, 7}, {9, 9}, {7, 7}, {9, 9}}, "7 2"},
	} {
		var written []portsAt
		for i, r := range c.in {
			written = append(written, portsAt{r, Span{Line: 1, Column: i}})
		}
		ranges, twice := sortPorts(written)
		got := ""
		if twice != nil {
			got = fmt.Sprint(twice, " ", twice.span.Column)
		}
		if got != c.twice {
			t.Errorf("%v: %q twice, want %q", c.in, got, c.twice)
		}
		for i := range ranges {
			if len(ranges) != len(c.in) || i > 0 && ranges[i].First < ranges[i-1].First {
				t.Errorf("%v is not in order", ranges)
			}
		}
	}
}
