package plan

import (
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

func TestWritten(t *testing.T) {
	htb := Queue{Scheduler: policy.HTB, Rate: 1e8, Classes: 8, Map: SpreadOver(8)}
	prio := Queue{Scheduler: policy.Prio, Classes: 16, Map: SpreadOver(16)}
	for _, c := range []struct {
		queue   Queue
		level   policy.Level
		written uint32
		class   uint8
		words   string
	}{
		{htb, 0, 0x7e1f0010, 0, "class 0"}, {htb, 15, 0x7e1f0017, 7, "class 7"}, {htb, 7, 0x7e1f0013, 3, "class 3"},
		{prio, 0, 0, 0, "priority 0"}, {prio, 15, 15, 15, "priority 15"},
	} {
		w := c.queue.Written(c.level)
		if w != c.written || c.queue.ClassOf(w) != c.class || c.queue.Describe(w) != c.words {
			t.Errorf("%s: level %d is written %#x, of class %d, %q", c.queue, c.level, w, c.queue.ClassOf(w), c.queue.Describe(w))
		}
	}
	if htb.Describe(Keep) != "as it comes" || htb.ClassOf(Keep) != 0 {
		t.Errorf("what keeps its priority: %q of class %d", htb.Describe(Keep), htb.ClassOf(Keep))
	}
}

func TestQueueString(t *testing.T) {
	for want, q := range map[string]Queue{
		"its own qdisc":                     {Scheduler: policy.None},
		"mqprio with 4 classes in hardware": {Scheduler: policy.MQPrio, Classes: 4, Offload: true},
		"prio with 16 classes at 1Gbit":     {Scheduler: policy.Prio, Classes: 16, Rate: 1e9},
	} {
		if got := q.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
