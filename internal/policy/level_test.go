package policy

import "testing"

func TestLevel(t *testing.T) {
	for level := Level(0); level < Levels; level++ {
		if got, err := ParseLevel(level.String()); err != nil || got != level {
			t.Errorf("%d prints as %q, which is %d, %v", level, level, got, err)
		}
	}
	for _, text := range []string{"", "16", "-1", "05", "1.0", "0x1", "high", "unset", "99999999999999999999"} {
		got, err := ParseLevel(text)
		if _, ok := err.(*ValueError); !ok || got != Unset {
			t.Errorf("ParseLevel(%q) = %d, %v", text, got, err)
		}
	}
}

func TestPriority(t *testing.T) {
	byLink := Priority{Default: 4, PerLink: map[string]Level{"eth1": 2, "eth0": 0}}
	for _, c := range []struct {
		p         Priority
		text      string
		on, other Level
	}{
		{Priority{Default: Unset}, "unset", Unset, Unset},
		{Priority{Default: 7}, "7", 7, 7},
		{byLink, "{eth0: 0, eth1: 2, default: 4}", 2, 4},
		{Priority{Default: Unset, PerLink: map[string]Level{"eth1": 15}}, "{eth1: 15}", 15, Unset},
	} {
		if c.p.String() != c.text || c.p.On("eth1") != c.on || c.p.On("eth9") != c.other || c.p.Empty() != (c.text == "unset") {
			t.Errorf("%+v is %s, on eth1 %s, else %s", c.p, c.p, c.p.On("eth1"), c.p.On("eth9"))
		}
	}
}
