package lab

import (
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
)

func TestAbsencesWithin(t *testing.T) {
	zero := time.Unix(1000, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	away := absences{ // in the order of their ends
		{CPU: 1, Begin: at(-5), End: at(3)},
		{CPU: 0, Begin: at(20), End: at(24)},
		{CPU: 1, Begin: at(18), End: at(30)},
		{CPU: 0, Begin: at(50), End: at(50)},
		{CPU: 0, Begin: at(90), End: at(120)},
	}
	for name, c := range map[string]struct {
		all      absences
		from, to int
		want     time.Duration
	}{
		"nothing was seen":         {nil, 0, 100, 0},
		"in part before and after": {away, 0, 100, 25 * time.Millisecond},
		"at the same time":         {away, 10, 40, 12 * time.Millisecond},
		"all of the time":          {away, 95, 110, 15 * time.Millisecond},
		"between two":              {away, 31, 49, 0},
		"no time":                  {away, 21, 21, 0},
		"one beside another": {absences{{CPU: 0, Begin: at(1), End: at(2)}, {CPU: 1, Begin: at(2), End: at(4)}}, 0, 9,
			3 * time.Millisecond},
	} {
		if got := c.all.within(at(c.from), at(c.to)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if away[1] != (traffic.Absence{CPU: 0, Begin: at(20), End: at(24)}) {
		t.Error("they are in another order now")
	}
}
