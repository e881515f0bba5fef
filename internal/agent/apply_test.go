package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// The caller is asked under the lock, of what then changes, and its refusal
// changes nothing: neither a host without Weir nor half a change.
func TestAccept(t *testing.T) {
	b := newBench(t)
	refused := errors.New("refused")
	text := b.policyText(goldPolicy)
	var asked Proposal
	answer := refused
	b.Accept = func(p Proposal) error {
		if _, err := b.Scope.LockForChange(); !errors.Is(err, state.ErrBusy) {
			t.Errorf("asked without the lock: %v", err)
		}
		asked = p
		return answer
	}
	before := b.dump(t)
	basis, err := b.Basis()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.tryApply(text); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	if asked.Basis != basis || len(asked.Differences) != 3 {
		t.Errorf("asked of %+v, basis %s", asked, basis)
	}
	b.sameAs(t, before, "a refused apply")

	b.suffer(t, victim{Verb: "apply", Policy: text, KillAt: 9})
	half := b.dump(t)
	if _, err := b.tryApply(text); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	b.sameAs(t, half, "a refused apply of half a change")

	answer = nil
	if done := b.apply(t, text); !cmp.Equal(done, asked.Differences) {
		t.Errorf("accepted %v, done %v", asked.Differences, done)
	}
	if b.apply(t, text); len(asked.Differences) != 0 {
		t.Errorf("nothing to do is %v", asked.Differences)
	}
}

// The status of an apply is what Status says, whether anything changed or not.
func TestAppliedStatus(t *testing.T) {
	b := newBench(t)
	text := b.policyText(goldPolicy)
	p, err := b.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		done, err := b.Apply(context.Background(), p, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want, err := b.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !want.OK || len(want.Promises) != 2 {
			t.Fatalf("status %+v", want)
		}
		for _, s := range []*Status{done.Status, want} { // traffic goes on
			s.Unclaimed, s.Links[0].Classes = nil, nil
			for i := range s.Promises {
				s.Promises[i].Traffic, s.Promises[i].Evidence = plan.Traffic{}, ""
			}
		}
		if diff := cmp.Diff(want, done.Status); diff != "" {
			t.Error(diff)
		}
	}
}

// A proof is as old as the last change that found everything kept, and no older
// than what is in force.
func TestProved(t *testing.T) {
	b := newBench(t)
	text := b.policyText(goldPolicy)
	proved := func() *state.Proof {
		t.Helper()
		s, err := b.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return s.Proved
	}
	if p := proved(); p != nil {
		t.Errorf("before anything was applied: %+v", p)
	}
	b.apply(t, text)
	first := proved()
	if first == nil || first.Verb != "apply" {
		t.Fatalf("after an apply: %+v", first)
	}
	b.apply(t, text)
	second := proved()
	if second == nil || !second.When.After(first.When) {
		t.Errorf("an apply without changes: %+v, before it %+v", second, first)
	}
	b.here.Output("tc", "qdisc", "del", "dev", b.link.Name, "root")
	if p := proved(); !cmp.Equal(p, second) {
		t.Errorf("while it is broken: %+v, want %+v", p, second)
	}
	if !b.suffer(t, victim{Verb: "apply", Policy: text, KillAt: 1}) {
		t.Fatal("the apply was not broken off")
	}
	if p := proved(); p != nil {
		t.Errorf("in the middle of a change: %+v", p)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if p := proved(); p != nil {
		t.Errorf("after a reset: %+v", p)
	}
}

// What fails after a change that was broken off goes back to what was in force
// before that one, wherever it was broken off.
func TestFailedAfterKilled(t *testing.T) {
	b := newBench(t)
	oldest, before, after := b.policyText(ironPolicy), b.policyText(goldPolicy), b.policyText(twoWorkloads)
	for _, v := range []victim{
		{Verb: "apply", Policy: after, KillAt: 1}, {Verb: "apply", Policy: after, KillAt: 12},
		{Verb: "reset", KillAt: 1},
	} {
		b.apply(t, oldest)
		b.apply(t, before)
		if !b.suffer(t, v) {
			t.Fatalf("%s was not broken off at place %d", v.Verb, v.KillAt)
		}
		n := 0
		b.Before = func(int, string) error {
			if n++; n == 5 {
				return errors.New("broken off")
			}
			return nil
		}
		if _, err := b.tryApply(after); !errors.Is(err, ErrRolledBack) {
			t.Fatalf("%s at place %d: %v", v.Verb, v.KillAt, err)
		}
		b.Before = nil
		b.inForce(t, before, fmt.Sprintf("%s at place %d", v.Verb, v.KillAt))
	}
}

// A policy before that does not fit the host any more is no reason to stay with
// what failed: then none is in force.
func TestBackToMisfit(t *testing.T) {
	b := newBench(t)
	before := b.dump(t)
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.apply(t, b.policyText(fmt.Sprintf("  gold: {match: [{pid: %d}], priority: 12}\n", cmd.Process.Pid)))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	n := 0
	b.Before = func(int, string) error {
		if n++; n == 9 {
			return errors.New("broken off")
		}
		return nil
	}
	_, err := b.tryApply(b.policyText(ironPolicy))
	b.Before = nil
	if !errors.Is(err, ErrRolledBack) || !strings.Contains(err.Error(), fmt.Sprintf("no process %d here", cmd.Process.Pid)) {
		t.Errorf("got %v", err)
	}
	b.sameAs(t, before, "going back to a policy that does not fit")
}

// A link that vanishes at any step of an apply makes it fail, and nothing is left
// of the change.
func TestLinkVanishes(t *testing.T) {
	for _, at := range []string{
		"remember what", "build the queue", "add htb", "load link_egress", "look for cgroups", "follow new sockets", "attach link_egress",
		"make generation", "let out what", "read everything",
	} {
		t.Run(at, func(t *testing.T) {
			b := newBench(t)
			gone := false
			b.Before = func(_ int, text string) error {
				if !gone && strings.HasPrefix(text, at) {
					gone = true
					b.here.Do(func() {
						if err := netlink.LinkDel(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: b.link.Index}}); err != nil {
							t.Errorf("remove the link: %v", err)
						}
					})
				}
				return nil
			}
			_, err := b.tryApply(b.policyText(goldPolicy))
			b.Before = nil
			if !gone {
				t.Fatal("there is no such step")
			}
			var wrong policy.Errors
			if !errors.Is(err, ErrRolledBack) || errors.As(err, &wrong) { // the policy was right
				t.Errorf("got %v", err)
			}
			if s, err := b.Status(context.Background()); err != nil || !s.OK || s.Policy != "" {
				t.Errorf("status %+v, %v", s, err)
			}
			if pins, _ := os.ReadDir(b.Scope.Pins); len(pins) != 0 {
				t.Errorf("pins are left: %v", pins)
			}
		})
	}
}

// A device that was renamed under contract keeps its queue, and gets back what
// it had before.
func TestLinkRenamed(t *testing.T) {
	b := newBench(t)
	b.here.Output("tc", "qdisc", "replace", "dev", b.link.Name, "root", "handle", "5:", "pfifo", "limit", "77")
	text := strings.Replace(b.policyText(goldPolicy), "{rate", "{adopt: true, rate", 1)
	b.apply(t, text)
	const renamed = "lan0"
	for _, args := range [][]string{{"down"}, {"name", renamed}, {"up"}} {
		b.here.Output("ip", append([]string{"link", "set", "dev", b.link.Name}, args...)...)
		if args[0] == "name" {
			text = strings.Replace(text, b.link.Name, renamed, 1)
			b.link.Name = renamed
		}
	}
	if d := b.apply(t, text); len(d) != 0 {
		t.Errorf("apply under the new name changes %v", d)
	}
	b.apply(t, strings.Replace(text, "100Mbit", "50Mbit", 1))
	if out := b.here.Output("tc", "class", "show", "dev", renamed); !strings.Contains(out, "50Mbit") {
		t.Errorf("the rate is not what the policy says:\n%s", out)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if out := b.here.Output("tc", "qdisc", "show", "dev", renamed); !strings.Contains(out, "pfifo 5: root") || !strings.Contains(out, "limit 77p") {
		t.Errorf("reset did not put back what was there:\n%s", out)
	}
}

func TestFollowNames(t *testing.T) {
	r := &state.Record{Links: map[string]state.LinkRecord{
		"eth0": {Index: 1}, "eth1": {Index: 2}, "usb0": {Index: 3}, "wan": {Index: 4},
	}}
	followNames(r, map[string]plan.LinkFacts{
		"eth1": {Index: 1}, "eth0": {Index: 2}, // swapped
		"wan": {Index: 5}, // another device
	})
	want := map[string]state.LinkRecord{"eth1": {Index: 1}, "eth0": {Index: 2}, "usb0": {Index: 3}, "wan": {Index: 4}}
	if diff := cmp.Diff(want, r.Links); diff != "" {
		t.Error(diff)
	}
	// What is known of a device that is gone gives way.
	followNames(r, map[string]plan.LinkFacts{"usb0": {Index: 4}})
	if l := r.Links["usb0"]; l.Index != 4 {
		t.Errorf("usb0 is %+v", l)
	}
}
