package tc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// dumped is a built tree as the kernel would dump it.
func dumped(nodes []node) entries {
	var all entries
	for _, n := range nodes {
		e := entry{what: n.newType(), kind: n.kind, handle: n.handle, parent: n.parent}
		e.options = n.options.encode().Serialize()[unix.SizeofRtAttr:]
		if n.sizes != nil {
			e.sizeTable = n.sizes.encode().Serialize()[unix.SizeofRtAttr:]
		}
		all = append(all, e)
	}
	return all
}

func words(ops []Op) []string {
	var out []string
	for _, op := range ops {
		out = append(out, op.String())
	}
	return out
}

func TestSteps(t *testing.T) {
	two := plan.Queue{Scheduler: policy.HTB, Rate: 100_000_000, Classes: 2, Leaf: plan.LeafBFIFO, Map: plan.SpreadOver(2)}
	mq := plan.Queue{Scheduler: policy.MQPrio, Classes: 2, Map: plan.SpreadOver(2)}
	none := plan.Queue{Scheduler: policy.None}
	foreign := entries{{what: unix.RTM_NEWQDISC, kind: "sfq", handle: 0x10000, parent: rootParent}}
	kernels := entries{{what: unix.RTM_NEWQDISC, kind: "mq", parent: rootParent}}

	addTwo := []string{
		"add htb qdisc 7e1f: at the root (default 0x10)",
		"add htb class 7e1f:1 at the root (rate 100Mbit, ceil 100Mbit, burst 65536b, cburst 65536b)",
		"add htb class 7e1f:10 at 7e1f:1 (rate 1Kbit, ceil 100Mbit, burst 1518b, cburst 65536b, prio 1, quantum 65791)",
		"add bfifo qdisc 7e30: at 7e1f:10 (limit 250000b)",
		"add htb class 7e1f:11 at 7e1f:1 (rate 1Kbit, ceil 100Mbit, burst 1518b, cburst 65536b, prio 0, quantum 130816)",
		"add bfifo qdisc 7e31: at 7e1f:11 (limit 250000b)",
	}
	replaceTwo := append([]string{strings.Replace(addTwo[0], "add", "replace the root by", 1)}, addTwo[1:]...)
	whole := dumped(mustBuild(t, two))
	for _, test := range []struct {
		name string
		have entries
		want plan.Queue
		ops  []string
	}{
		{"nothing to remove", nil, none, nil},
		{"foreign stays", foreign, none, nil},
		{"remove", whole, none, []string{"delete htb qdisc 7e1f: at the root"}},
		{"same", whole, two, nil},
		{"new", nil, two, addTwo},
		{"over the kernel's", kernels, two, addTwo},
		{"over a foreign", foreign, two, replaceTwo},
		{"mqprio over a foreign", foreign, mq, []string{
			"delete sfq qdisc 1: at the root",
			"add mqprio qdisc 7e1f: at the root (classes 2, map 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1, queues (2@0)(2@2), hw 0)",
		}},
		{"finish", whole[:4], two, addTwo[4:]},
		{"middle missing", append(append(entries{}, whole[:3]...), whole[4:]...), two, addTwo[3:4]},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := steps(1, test.have, nil, mustBuild(t, test.want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.ops, words(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStepsInPlace: a new rate changes classes and limits where they stand. One
// class more moves the prios of the others, and another map the default.
func TestStepsInPlace(t *testing.T) {
	two := plan.Queue{Scheduler: policy.HTB, Rate: 100_000_000, Classes: 2, Leaf: plan.LeafBFIFO, Map: plan.SpreadOver(2)}
	faster, three, moved := two, two, two
	faster.Rate = 200_000_000
	three.Classes, three.Map = 3, plan.SpreadOver(3)
	moved.Map[0] = 1
	for _, test := range []struct {
		want  plan.Queue
		verbs string
	}{
		{faster, "change change change change change"},
		{three, "delete add add add add add add add add"},
		{moved, "delete add add add add add add"},
	} {
		ops, err := steps(1, dumped(mustBuild(t, two)), nil, mustBuild(t, test.want))
		if err != nil {
			t.Fatal(err)
		}
		var verbs []string
		for _, op := range ops {
			verbs = append(verbs, strings.Fields(op.String())[0])
		}
		if got := strings.Join(verbs, " "); got != test.verbs {
			t.Errorf("%+v: %s, want %s", test.want, opStrings(ops), test.verbs)
		}
	}
}

func mustBuild(t rapid.TB, q plan.Queue) []node {
	t.Helper()
	nodes, err := build(q, 4)
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// TestRecognise: what was built is known again, without a kernel.
func TestRecognise(t *testing.T) {
	for _, c := range queueCases() {
		all := dumped(mustBuild(t, c.queue))
		got, err := all.recognise()
		if err != nil || !got.Equal(c.queue.Normal()) {
			t.Errorf("%s: recognised %+v, %v, want %+v", c.name, got, err, c.queue.Normal())
		}
	}
}
