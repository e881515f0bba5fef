package tc

import (
	"errors"
	"math"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// TestGuarantees fills classes and shares and lets go: while all wait, each share has
// what it is promised, and the rest goes by priority.
func TestGuarantees(t *testing.T) {
	// paid is when a share no longer owes for a packet that it sent while the line
	// was held: a fifth of the line was held to a fiftieth.
	const paid = 60
	for _, test := range []struct {
		name   string
		shares []plan.Share    // in percent of the line
		fills  []int           // four classes, and the shares behind them
		want   map[int]float64 // who sends, in parts of the line; others have their floors
	}{
		{"the whole line", []plan.Share{{Min: 20}, {Min: 30, Class: 3}, {Min: 50, Class: 1}},
			[]int{0, 1, 2, 3, 4, 5, 6}, map[int]float64{4: 0.2, 5: 0.3, 6: 0.5}},
		{"the rest for the most urgent", []plan.Share{{Min: 20}, {Min: 30, Class: 2}},
			[]int{0, 1, 2, 3, 4, 5}, map[int]float64{3: 0.5, 4: 0.2, 5: 0.3}},
		{"an idle share", []plan.Share{{Min: 20, Class: 3}, {Min: 30}},
			[]int{0, 1, 2, 3, 5}, map[int]float64{3: 0.7, 5: 0.3}},
		{"a share borrows as its class", []plan.Share{{Min: 20, Class: 3}, {Min: 30}},
			[]int{0, 1, 2, 4}, map[int]float64{4: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := caseNamed(t, "htb buckets")
			for _, q.Rate = range []policy.Rate{100_000_000, 1_000_000} { // an emulated CPU does not fill 100 Mbit/s
				q.Shares = nil
				for _, s := range test.shares {
					s.Min = s.Min * q.Rate / 100
					q.Shares = append(q.Shares, s)
				}
				link, sink := wire(t, 1)
				all, held := drain(t, link, sink, q, test.fills)
				strictBeside(t, q, all)
				all = whileAllWait(all[held:], test.want)
				all = all[min(paid, len(all)):]
				if reached := lineRate(t, q, all); reached >= 0.7 {
					divided(t, q, all, test.want)
					return
				}
				if t.Failed() {
					return
				}
			}
			t.Error("at no rate the line was full while packets waited")
		})
	}
}

// strictBeside fails the test unless the classes take turns as they do where there
// are no shares.
func strictBeside(t *testing.T, q plan.Queue, all []arrival) {
	t.Helper()
	var classes []arrival
	for _, a := range all {
		if a.class < q.Classes {
			classes = append(classes, a)
		}
	}
	for c := range q.Classes {
		waitsItsTurn(t, q, classes, c)
	}
}

// whileAllWait is what arrives until the first of some has nothing left.
func whileAllWait(all []arrival, some map[int]float64) []arrival {
	last := map[int]int{}
	for i, a := range all {
		last[a.class] = i
	}
	until := len(all)
	for class := range some {
		until = min(until, last[class])
	}
	return all[:until]
}

// divided fails the test unless all that arrived is divided as wanted.
func divided(t *testing.T, q plan.Queue, all []arrival, want map[int]float64) {
	t.Helper()
	sent := map[int]int{}
	for _, a := range all {
		sent[a.class]++
	}
	for class := range q.Classes + len(q.Shares) {
		got := float64(sent[class]) / float64(len(all))
		if math.Abs(got-want[class]) > 0.02 {
			t.Errorf("%d has %.3f of the line, want %.2f", class, got, want[class])
		}
	}
}

// TestShareOfAnotherClass fills a share up that borrows last, and lets it borrow
// first: HTB would leave it where it was while packets wait in it.
func TestShareOfAnotherClass(t *testing.T) {
	q := caseNamed(t, "htb buckets")
	share, others := q.Classes, []int{0, 1, 2}
	q.Shares = []plan.Share{{Min: 1_000_000}}
	link, sink := wire(t, 1)
	apply(t, link, q)
	for _, c := range others {
		sendLeaves(t, link, q, c, 2)
	}
	atRest(t, link)
	holdLine(t, link, q.Undivided()) // a held share would owe for long what new leaves have in store
	fill(t, link, q, share)
	q.Shares = []plan.Share{{Min: 1_000_000, Class: 3}}
	ops, err := Steps(link.Index, q, Options{})
	if err == nil {
		err = runAll(ops[1:]) // the first is the line's rate
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(others, share) {
		fill(t, link, q, c)
	}
	sent := func() int { return int(tcCounters(t, link, "qdisc")[handleString(rootHandle)].Packets) }
	full := sent()
	apply(t, link, q)
	atRest(t, link)
	first := map[int]float64{share: 1}
	divided(t, q, whileAllWait(receive(t, sink, sent())[full:], first), first)
}

// TestShareKeepsWhatComes changes the class that a share borrows as, while packets come for it: none of them
// goes into the class of those that name none, where it might starve.
func TestShareKeepsWhatComes(t *testing.T) {
	q := caseNamed(t, "htb buckets")
	q.Shares = []plan.Share{{Min: 1_000_000}}
	link, _ := wire(t, 1)
	apply(t, link, q)
	changed := make(chan error, 1)
	go func() {
		var err error
		link.NS.Do(func() {
			for i := range 20 {
				other := q
				other.Shares = []plan.Share{{Min: 1_000_000, Class: uint8(3 * ((i + 1) % 2))}}
				err = errors.Join(err, Apply(link.Index, other, Options{}))
			}
		})
		changed <- err
	}()
	for sending := true; sending; {
		select {
		case err := <-changed:
			if err != nil {
				t.Fatal(err)
			}
			sending = false
		default:
			sendUDP(t, link, q.WrittenShare(0), 100, make([]byte, payload))
		}
	}
	for c, counted := range mustCount(t, link) {
		if counted.Packets+counted.Drops+uint64(counted.QueueLen) != 0 {
			t.Errorf("class %d has %+v", c, counted)
		}
	}
}

// TestSharesComeAndGo changes shares under packets that wait: those of others stay
// where they are.
func TestSharesComeAndGo(t *testing.T) {
	const packets = 100
	cases := []string{"htb 100M", "htb shares", "htb other shares", "htb shares apart", "htb 100M"}
	q := caseNamed(t, cases[0])
	link, _ := wire(t, 1)
	apply(t, link, q)
	for _, name := range cases[1:] {
		holdLine(t, link, q.Undivided())
		q = caseNamed(t, name)
		before := mustCount(t, link)
		sendUDP(t, link, q.Written(0), packets, make([]byte, payload))
		if mustCount(t, link)[0].QueueLen == 0 {
			t.Fatal("nothing waits")
		}
		apply(t, link, q)
		holds(t, link, q)
		if after := atRest(t, link)[0]; after.Packets != before[0].Packets+packets || after.Drops != 0 {
			t.Errorf("to %s: %+v, after %d packets more than %+v", name, after, packets, before[0])
		}
	}
}
