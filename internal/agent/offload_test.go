package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// attempts are the steps that try the hardware, for a policy and what is known.
func attempts(b *bench, d *draft, r *state.Record) *change {
	c := &change{Agent: b.Agent, verb: "apply", record: r}
	c.addAttempts(d)
	return c
}

// An attempt is made once for a device, where the policy asks for mqprio, and on
// no root of somebody else's.
func TestAttempts(t *testing.T) {
	b := &bench{Agent: &Agent{}}
	d := &draft{
		policy: &policy.Policy{Links: []policy.Link{
			{Name: "asked", Scheduler: policy.MQPrio}, {Name: "auto", Scheduler: policy.Auto}, {Name: "known", Scheduler: policy.MQPrio},
			{Name: "foreign", Scheduler: policy.MQPrio, Adopt: true}, {Name: "ours", Scheduler: policy.MQPrio},
		}},
		facts: plan.Facts{Links: map[string]plan.LinkFacts{
			"asked": {Index: 1, Root: plan.Qdisc{Default: true}}, "auto": {Index: 2, Root: plan.Qdisc{Default: true}},
			"known": {Index: 3, Root: plan.Qdisc{Default: true}}, "foreign": {Index: 4, Root: plan.Qdisc{Handle: 5 << 16}},
			"ours": {Index: 5, Root: plan.Qdisc{Handle: plan.RootHandle << 16}},
		}},
	}
	r := &state.Record{Offload: map[int]bool{3: false}, Links: map[string]state.LinkRecord{"ours": {Index: 5}}}
	var steps []string
	for _, s := range attempts(b, d, r).steps {
		text, _, _ := strings.Cut(s.text, ";")
		steps = append(steps, text)
	}
	want := []string{
		"remember what is at the root of asked", "try mqprio in the hardware of asked", "try mqprio in the hardware of ours",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
}

// What an attempt finds is in the record, under the device and not its name; one
// that is broken off leaves a link that reset knows of.
func TestAttempt(t *testing.T) {
	b := newBenchOn(t, testutil.VethOptions{Queues: 4})
	before := b.dump(t)
	var links map[string]plan.LinkFacts
	err := b.inScope(func() (err error) {
		links, err = host.Links(context.Background())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &draft{
		policy: &policy.Policy{Links: []policy.Link{{Name: b.link.Name, Scheduler: policy.MQPrio}}},
		facts:  plan.Facts{Links: links, Features: plan.Features{Qdiscs: map[string]bool{"mqprio": true}}},
	}
	err = b.locked(func(r *state.Record) error {
		c := attempts(b, d, r)
		if err := c.run(context.Background()); err != nil {
			return err
		}
		if takes, known := r.Offload[b.link.Index]; takes || !known {
			t.Errorf("a veth takes mqprio in hardware: %v", r.Offload)
		}
		if again := attempts(b, d, r); len(again.steps) != 0 {
			t.Errorf("tried again: %v", again.steps)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if held, err := b.Held(); err != nil || len(held) == 0 {
		t.Errorf("nothing is held: %v, %v", held, err)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.sameAs(t, before, "an attempt and a reset")
}
