package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

// TestJudgeClassLimits: a class that lets more through than its limit while packets wait is
// broken, whatever was read back.
func TestJudgeClassLimits(t *testing.T) {
	p := parsed(t, limitsByHTB)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	owner := Owner{Contract: w.Contracts["here"].ID, Link: w.Links["eth0"].Index}
	const read = "read back: at most 10Mbit by htb"
	want := Judgement{Workload: "here", Link: "eth0", Promise: PromiseEgress, Priority: policy.Unset, Max: 10_000_000, Traffic: Traffic{3, 180}}
	judges(t, p, want, map[string]judging{
		"nothing waits":       {nil, map[Owner]Served{owner: {Dropped: 7}}, Kept, read + "; 7 packets dropped; nothing of it waits"},
		"at its limit":        {nil, map[Owner]Served{owner: {Waited: true, Got: 10_012_345, Surely: 9_987_654}}, Kept, read + "; 10Mbit over 500ms, and more waits"},
		"within one packet":   {nil, map[Owner]Served{owner: {Waited: true, Got: 12e6, Surely: 11_248_576}}, Kept, read + "; 12Mbit over 500ms, and more waits"},
		"readings took long":  {nil, map[Owner]Served{owner: {Waited: true, Got: 99e6, Surely: 10e6}}, Kept, read + "; 99Mbit over 500ms, and more waits"},
		"more":                {nil, map[Owner]Served{owner: {Waited: true, Got: 12e6, Surely: 11_248_577}}, Broken, read + "; 12Mbit over 500ms, and more waits"},
		"less, by a priority": {nil, map[Owner]Served{owner: {Waited: true}}, Kept, read + "; 0bit over 500ms, and more waits"},
		"nobody knows":        {nil, nil, Unprovable, read + "; what it gets could not be read"},
		"another ceiling": {func(s *State) {
			drift(s, func(l *LinkState) { l.Queue.Shares = slices.Clone(l.Queue.Shares); l.Queue.Shares[0].Max = 2e7 })
		}, nil, Broken, `htb with 8 classes at 100Mbit, 21Mbit of it in 2 shares, with 2 limits (leaves "fq_codel", buckets 1, map [0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7], ` +
			`shares [at most 20Mbit by htb, as class 4 at least 20Mbit, beyond that class 0, at most 30Mbit by htb at least 1Mbit, beyond that class 0]) -> ` +
			`htb with 8 classes at 100Mbit, 21Mbit of it in 2 shares, with 2 limits (leaves "fq_codel", buckets 1, map [0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7], ` +
			`shares [at most 10Mbit by htb, as class 4 at least 20Mbit, beyond that class 0, at most 30Mbit by htb at least 1Mbit, beyond that class 0])`},
	})
	var of []string
	for _, j := range Judge(p, w, nil, Measured{}) {
		of = append(of, j.Workload+" "+j.Link+" "+j.Promise+" "+j.Terms())
	}
	if diff := cmp.Diff([]string{
		"here eth0 priority priority 8", "here eth1 priority priority 8", "here eth0 egress at most 10Mbit",
		"both eth0 share at least 20Mbit", "both eth0 egress at most 30Mbit", "both * egress at most 50Mbit", "both eth1 egress at most 40Mbit",
		"paced eth0 egress at most 10Mbit", "share eth0 share at least 1Mbit",
	}, of); diff != "" {
		t.Error(diff)
	}
}

func TestServedOver(t *testing.T) {
	got := ServedOver(400*time.Millisecond, 500*time.Millisecond, 50_000, 3)
	if want := (Served{true, 1_000_000, 800_000, 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
