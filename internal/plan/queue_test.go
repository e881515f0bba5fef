package plan

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

func TestQueueCheck(t *testing.T) {
	good := Queue{Scheduler: policy.HTB, Rate: 100_000_000, Classes: 4, Leaf: LeafBFIFO, Map: SpreadOver(4)}
	for _, test := range []struct {
		change func(*Queue)
		want   string
	}{
		{func(*Queue) {}, ""},
		{func(q *Queue) { *q = Queue{Scheduler: policy.None} }, ""},
		{func(q *Queue) { q.Scheduler = policy.Auto }, `scheduler "auto" can not be built`},
		{func(q *Queue) { q.Classes = 9 }, "htb takes 1 to 8 classes, not 9"},
		{func(q *Queue) { q.Classes, q.Scheduler = 1, policy.Prio }, "prio takes 2 to 16 classes, not 1"},
		{func(q *Queue) { q.Classes = 3 }, "priority 12 maps to class 3 of 3"},
		{func(q *Queue) { q.Rate = 0 }, "htb needs a rate"},
		{func(q *Queue) { q.Rate, q.Scheduler = 0, policy.Prio }, ""},
		{func(q *Queue) { q.Rate = 7999 }, "rate 7.999Kbit is below 8Kbit"},
		{func(q *Queue) { q.Leaf = LeafDefault }, "htb needs a leaf"},
		{func(q *Queue) { q.Offload = true }, "htb has no hardware form"},
		{func(q *Queue) { q.Scheduler = policy.MQPrio }, "mqprio can not be shaped"},
		{func(q *Queue) { q.Scheduler, q.Rate = policy.MQPrio, 0 }, "mqprio has no leaves of ours"},
		{func(q *Queue) { *q = Queue{Scheduler: policy.MQPrio, Classes: 4, Offload: true, Map: SpreadOver(4)} }, ""},
		{func(q *Queue) { *q = Queue{Scheduler: policy.FQ, Classes: 2} }, "fq takes 3 classes"},
		{func(q *Queue) { *q = Queue{Scheduler: policy.FQ, Classes: 3, Map: SpreadOver(3)} }, ""},
		{func(q *Queue) { q.Shares = []Share{{Min: 40_000_000, Class: 3}, {Min: 60_000_000, Class: 0}} }, ""},
		{func(q *Queue) { q.Shares = []Share{{Min: 1_000_000, Class: 4}} }, "share 0 borrows as class 4 of 4"},
		{func(q *Queue) { q.Shares = []Share{{}, {Min: 1_000_000, Class: 0}} }, ""},
		{func(q *Queue) { q.Shares = []Share{{Min: 1_000_000, Class: 0}, {Min: 0, Class: 1}} }, "share 1 of 0bit is below 8Kbit"},
		{func(q *Queue) {
			q.Shares = []Share{{Max: 1_000_000}, {Min: 8_000, Max: 8_000, Class: 3}, {Max: q.Rate}}
		}, ""},
		{func(q *Queue) { q.Shares = []Share{{Max: 7_999}} }, "share 0 is held to 7.999Kbit, of at least 8Kbit"},
		{func(q *Queue) { q.Shares = []Share{{Min: 9_000, Max: 8_000}} }, "share 0 is held to 8Kbit, of at least 9Kbit"},
		{func(q *Queue) { q.Shares = []Share{{Max: q.Rate + 8}} }, "share 0 is held to 100000.008Kbit"},
		{func(q *Queue) { q.Shares = make([]Share, MaxShares+1) }, "257 shares, at most 256"},
		{func(q *Queue) { q.Scheduler, q.Shares = policy.Prio, []Share{{Min: 1_000_000, Class: 0}} }, "prio has no shares"},
	} {
		q := good
		test.change(&q)
		err := q.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", q, err, test.want)
		}
	}
}

func TestQueueNormal(t *testing.T) {
	q := Queue{Scheduler: policy.HTB, Rate: 123_456_789, Classes: 4, Leaf: LeafBFIFO, Map: SpreadOver(4)}
	want := q
	want.Rate = 123_456_784
	if got := q.Normal(); !got.Equal(want) || !got.Normal().Equal(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	q.Shares = []Share{{}, {Min: 8_007, Class: 1}, {}, {Min: 9_000, Max: 123_456_784}, {Max: 123_456_789}, {Min: 9_000, Max: 9_007}, {}}
	want.Shares = []Share{{}, {Min: 8_000, Class: 1}, {}, {Min: 9_000}, {Max: 123_456_784}, {Min: 9_000, Max: 9_000}}
	if got := q.Normal(); !got.Equal(want) || !got.Normal().Equal(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	none := Queue{Scheduler: policy.None, Rate: 5, Classes: 3}
	if got := none.Normal(); !got.Equal(Queue{Scheduler: policy.None}) {
		t.Errorf("%+v", got)
	}
}

func TestSpreadOver(t *testing.T) {
	for n := 1; n <= policy.Levels; n++ {
		m := SpreadOver(n)
		count := map[uint8]int{}
		for p, c := range m {
			count[c]++
			if p > 0 && c < m[p-1] {
				t.Errorf("%d classes: priority %d is in class %d, below its lower neighbour's", n, p, c)
			}
		}
		if len(count) != n || m[0] != 0 || m[policy.Levels-1] != uint8(n-1) {
			t.Errorf("%d classes: %v", n, m)
		}
		for c, k := range count {
			if k < policy.Levels/n || k > policy.Levels/n+1 {
				t.Errorf("%d classes: class %d has %d priorities", n, c, k)
			}
		}
	}
}
