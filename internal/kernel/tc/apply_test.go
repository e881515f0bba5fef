package tc

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

func TestApplyReadRemove(t *testing.T) {
	for _, c := range queueCases() {
		t.Run(c.name, func(t *testing.T) {
			testutil.Needs(t, c.needs...)
			link := newLink(t, 4)
			before := shape(t, link)
			apply(t, link, c.queue)
			holds(t, link, c.queue)
			ops, err := Steps(link.Index, c.queue, Options{TXQueues: 4})
			if err != nil || len(ops) > 0 {
				t.Errorf("a second apply would %s (%v)", opStrings(ops), err)
			}
			if t.Failed() {
				t.Log(shape(t, link))
			}
			for range 2 {
				if err := Remove(link.Index); err != nil {
					t.Fatal(err)
				}
			}
			if after := shape(t, link); after != before {
				t.Errorf("removed:\n%swant:\n%s", after, before)
			}
		})
	}
}

// TestApplyAsTcSeesIt compares with the words of the witness.
func TestApplyAsTcSeesIt(t *testing.T) {
	tests := map[string][]string{
		"htb 100M": {
			"qdisc htb 7e1f: root r2q 10 default 0x10",
			"class htb 7e1f:1 root rate 100Mbit ceil 100Mbit linklayer ethernet burst 64Kb",
			"class htb 7e1f:13 parent 7e1f:1 leaf 7e33: prio 0 quantum 126976 rate 1Kbit ceil 100Mbit linklayer ethernet burst 1518b",
			"class htb 7e1f:10 parent 7e1f:1 leaf 7e30: prio 3 quantum 65551 rate 1Kbit ceil 100Mbit",
			"qdisc bfifo 7e33: parent 7e1f:13 limit 250000b",
		},
		"htb buckets": {
			"qdisc htb 7e1f: root r2q 10 default 0x100",
			"class htb 7e1f:101 parent 7e1f:1 leaf 7e31: prio 3 quantum 81923 rate 120bit ceil 100Mbit linklayer ethernet burst 1518b",
			"class htb 7e1f:407 parent 7e1f:1 leaf 7e67: prio 0 quantum 81923 rate 120bit ceil 100Mbit",
			"class htb 7e1f:403 parent 7e1f:1 leaf 7e63: prio 0 quantum 81920",
			"qdisc bfifo 7e67: parent 7e1f:407 limit 128Kb",
		},
		"htb share buckets": {
			"class htb 7e1f:3001 parent 7e1f:1 rate 30Mbit ceil 100Mbit linklayer ethernet burst 19657b/1 mpu 0b cburst 64Kb/1 mpu 0b level 6",
			"class htb 7e1f:2017 parent 7e1f:3001 leaf 500f: prio 0 quantum 81923 rate 8bit ceil 100Mbit linklayer ethernet burst 1b",
			"class htb 7e1f:2022 parent 7e1f:3002 leaf 5012: prio 2 quantum 81923 rate 8bit ceil 100Mbit",
			"qdisc bfifo 500f: parent 7e1f:2017 limit 128Kb",
		},
		"htb 400G": {"class htb 7e1f:1 root rate 400Gbit ceil 400Gbit"},
		"prio": {
			"qdisc prio 7e1f: root bands 4 priomap 3 3 3 3 2 2 2 2 1 1 1 1 0 0 0 0",
			"qdisc bfifo 7e33: parent 7e1f:1 limit 1Mb",
			"qdisc bfifo 7e30: parent 7e1f:4 limit 1Mb",
		},
		"prio 2 shaped": {
			"qdisc htb 7e1f: root r2q 10 default 0x1",
			"class htb 7e1f:1 root leaf 7e20: prio 0 quantum 65536 rate 100Mbit ceil 100Mbit",
			"qdisc prio 7e20: parent 7e1f:1 bands 2 priomap 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 0",
			"qdisc bfifo 7e31: parent 7e20:1 limit 250000b",
		},
		"ets shaped": {
			"qdisc ets 7e20: parent 7e1f:1 bands 16 strict 16 priomap 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0",
		},
		"mqprio 3": {
			"qdisc mqprio 7e1f: root tc 3 map 0 0 0 0 0 0 1 1 1 1 1 2 2 2 2 2 ",
			"queues:(0:1) (2:2) (3:3)",
		},
		"htb fq_codel slow": {"limit 10240p flows 1024 quantum 300 target 18.2ms interval 113ms"},
		"fq banded":         {"qdisc fq 7e1f: root"},
	}
	for _, c := range queueCases() {
		want, ok := tests[c.name]
		if !ok {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			testutil.Needs(t, c.needs...)
			link := newLink(t, 4)
			apply(t, link, c.queue)
			got := strings.ReplaceAll(shape(t, link), "dev "+link.Name+" ", "")
			got = strings.Join(strings.Fields(got), " ")
			for _, w := range want {
				if w = strings.TrimSpace(w); !strings.Contains(got, w) {
					t.Errorf("tc does not show %q in:\n%s", w, shape(t, link))
				}
			}
		})
	}
}

// TestWalk goes from any queue to any other.
func TestWalk(t *testing.T) {
	cases := present(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	link := newLink(t, 4)
	for step := range 60 {
		c := cases[random.IntN(len(cases))]
		apply(t, link, c.queue)
		holds(t, link, c.queue)
		if t.Failed() {
			t.Fatalf("seed %d step %d: %s\n%s", seed, step, c.name, shape(t, link))
		}
	}
}

// TestCutShort ends every change after each of its ops: the next Apply has to
// finish it, and Remove to take all away.
func TestCutShort(t *testing.T) {
	find := func(name string) plan.Queue {
		for _, c := range present(t) {
			if c.name == name {
				return c.queue
			}
		}
		return plan.Queue{}
	}
	changes := [][2]string{
		{"", "htb reversed"}, {"htb 100M", "htb 40G"}, {"htb 100M", "htb buckets"}, {"htb buckets", "htb two buckets"}, {"htb buckets", "htb buckets reversed"}, {"htb 100M", "htb one class"}, {"htb slow", "htb fq_codel slow"},
		{"htb 100M", "prio 2 shaped"}, {"prio 2 shaped", "htb 100M"}, {"prio", "prio reversed"}, {"prio 16", "prio"},
		{"prio", "ets"}, {"ets shaped", "mqprio 3"}, {"mqprio 4", "mqprio 3"}, {"mqprio 4", "htb 100M"}, {"fq banded", "fq"},
		{"htb 100M", "htb shares"}, {"htb shares", "htb 100M"}, {"htb shares", "htb other shares"}, {"htb other shares", "htb shares"},
		{"htb shares", "htb shares apart"}, {"htb shares apart", "htb other shares"},
		{"htb 100M", "htb limits"}, {"htb limits", "htb 100M"}, {"htb limits", "htb other limits"}, {"htb other limits", "htb limits"},
		{"htb limits", "htb shares"}, {"htb shares", "htb limits"}, {"htb limits", "htb limit buckets"}, {"htb buckets", "htb limit buckets"},
		{"htb shares", "htb share buckets"}, {"htb buckets", "htb share buckets"}, {"htb share buckets", "htb buckets"},
	}
	for _, change := range changes {
		from, to := find(change[0]), find(change[1])
		if to.Classes == 0 || from.Classes == 0 && change[0] != "" {
			continue // TestApplyReadRemove says what this kernel lacks
		}
		t.Run(change[0]+" to "+change[1], func(t *testing.T) {
			link := newLink(t, 4)
			before := shape(t, link)
			step := 1
			if testing.Short() {
				step = 3 // odd, so that every other cut is finished
			}
			for cut := 0; ; cut += step {
				if from.Classes > 0 {
					apply(t, link, from)
				}
				ops, err := Steps(link.Index, to, Options{TXQueues: 4})
				if err != nil {
					t.Fatal(err)
				}
				if cut > len(ops) {
					break
				}
				if err := runAll(ops[:cut]); err != nil {
					t.Fatal(err)
				}
				if s, err := Read(link.Index); err != nil {
					t.Errorf("after %d of %d ops: %v", cut, len(ops), err)
				} else if s.Err() == nil && s.Queue.Equal(to.Normal()) && cut < len(ops) {
					t.Errorf("after %d of %d ops nothing seems to be left to do", cut, len(ops))
				}
				if cut%2 == 1 { // by turns: finish, or give up
					apply(t, link, to)
					holds(t, link, to)
				}
				if err := Remove(link.Index); err != nil {
					t.Fatal(err)
				}
				if s, err := Read(link.Index); err != nil || !s.Root.Default {
					t.Fatalf("after %d of %d ops Remove leaves %+v, %v", cut, len(ops), s, err)
				}
			}
			if err := Remove(link.Index); err != nil {
				t.Fatal(err)
			}
			if after := shape(t, link); after != before {
				t.Errorf("left behind:\n%swant:\n%s", after, before)
			}
		})
	}
}

func TestApplyLeavesForeignRoots(t *testing.T) {
	link := newLink(t, 1)
	tc(t, "qdisc add dev "+link.Name+" root handle 5: pfifo limit 7")
	before := shape(t, link)
	want := queueCases()[2].queue
	if err := Apply(link.Index, want, Options{}); !errors.Is(err, ErrForeign) {
		t.Errorf("apply over a foreign root: %v", err)
	}
	if err := Remove(link.Index); err != nil {
		t.Errorf("remove where nothing is ours: %v", err)
	}
	if after := shape(t, link); after != before {
		t.Errorf("changed to %s", after)
	}
	if err := Apply(link.Index, want, Options{Adopt: true}); err != nil {
		t.Fatal(err)
	}
	holds(t, link, want)
}

// TestAddDoesNotReplace: a root that somebody sets between look and step stays.
func TestAddDoesNotReplace(t *testing.T) {
	link := newLink(t, 1)
	ops, err := Steps(link.Index, queueCases()[2].queue, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tc(t, "qdisc add dev "+link.Name+" root handle 5: pfifo limit 7")
	before := shape(t, link)
	if err := runAll(ops); err == nil {
		t.Error("replaced a root that came in between")
	}
	if after := shape(t, link); after != before {
		t.Errorf("changed to %s", after)
	}
}
