package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint16Range(1, 65535).Draw(t, "first")
		want := PortRange{first, rapid.Uint16Range(first, 65535).Draw(t, "last")}
		got, err := ParsePorts(want.String())
		if err != nil || got != want || got.Count() < 1 {
			t.Fatalf("%+v prints as %q, which is %+v, %v", want, want, got, err)
		}
	})
	for _, text := range []string{"", "0", "65536", "-1", "80-", "-", "90-80", "0-5", "80-90-100", "080", "80:90", "80,90", "http", "99999999999999999999", "80 - 90"} {
		if got, err := ParsePorts(text); err == nil {
			t.Errorf("ParsePorts(%q) = %+v", text, got)
		}
	}
}

func TestSortPorts(t *testing.T) {
	for _, c := range []struct {
		in    []PortRange
		twice string
	}{
		{[]PortRange{{443, 443}, {80, 80}, {8000, 8099}}, ""},
		{[]PortRange{{81, 90}, {80, 80}}, ""},
		{[]PortRange{{80, 80}, {80, 80}}, "80"},
		{[]PortRange{{80, 90}, {85, 100}}, "85-90"},
		{[]PortRange{{80, 100}, {85, 90}}, "85-90"},
	} {
		twice, overlap := sortPorts(c.in)
		if overlap != (c.twice != "") || overlap && twice.String() != c.twice {
			t.Errorf("%v: %v %v, want %q", c.in, twice, overlap, c.twice)
		}
		for i := 1; i < len(c.in); i++ {
			if c.in[i].First < c.in[i-1].First {
				t.Errorf("%v is not in order", c.in)
			}
		}
	}
}
