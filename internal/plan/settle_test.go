package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettle(t *testing.T) {
	const a, b = FirstID, FirstID + 1
	type cgroups = map[uint64]ContractID
	for _, tt := range []struct {
		name                       string
		before, have, later, after cgroups
		wantedButMissing, tooMany  cgroups
	}{
		{name: "still", before: cgroups{1: a}, have: cgroups{1: a}, later: cgroups{1: a}, after: cgroups{1: a}},
		{name: "born before the reading", have: cgroups{1: a}, later: cgroups{1: a}, after: cgroups{1: a}},
		{name: "born after it", later: cgroups{1: a}, after: cgroups{1: a}},
		{name: "died before it", before: cgroups{1: a}},
		{name: "died after it", before: cgroups{1: a}, have: cgroups{1: a}},
		{name: "lived between the looks", have: cgroups{1: a}},
		{name: "never claimed", before: cgroups{1: a}, after: cgroups{1: a}, wantedButMissing: cgroups{1: a}},
		{name: "left behind", have: cgroups{1: a}, later: cgroups{1: a}, tooMany: cgroups{1: a}},
		{
			name: "claimed for another", before: cgroups{1: a}, have: cgroups{1: b}, later: cgroups{1: b}, after: cgroups{1: a},
			wantedButMissing: cgroups{1: a}, tooMany: cgroups{1: b},
		},
		{name: "renamed before the reading", before: cgroups{1: a}, have: cgroups{1: b}, later: cgroups{1: b}, after: cgroups{1: b}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, h := Rules{Cgroups: tt.before, Cgroups1: tt.before}, Rules{Cgroups: tt.have, Cgroups1: tt.have}
			Settle(&w, &h, Rules{Cgroups: tt.later, Cgroups1: tt.later}, Rules{Cgroups: tt.after, Cgroups1: tt.after})
			less := func(a, b cgroups) cgroups {
				var rest cgroups
				for id, c := range a {
					if b[id] != c {
						if rest == nil {
							rest = cgroups{}
						}
						rest[id] = c
					}
				}
				return rest
			}
			if diff := cmp.Diff([]cgroups{tt.wantedButMissing, tt.tooMany}, []cgroups{less(w.Cgroups, h.Cgroups), less(h.Cgroups, w.Cgroups)}); diff != "" {
				t.Error(diff)
			}
			if CgroupsDiffer(w, h) != (tt.wantedButMissing != nil || tt.tooMany != nil) || !cmp.Equal(w.Cgroups, w.Cgroups1) {
				t.Errorf("wanted %v, have %v", w, h)
			}
		})
	}
}
