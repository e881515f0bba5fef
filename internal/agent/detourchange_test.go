package agent

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestDetourChanges: a limit goes from one rung to the other and back; what others take
// away or change is missed and comes back; no device and no clsact of ours stays.
func TestDetourChanges(t *testing.T) {
	needsMethod(t, policy.MethodIfb)
	testutil.Proves(t, testutil.Drift)
	testutil.Needs(t, "ip")
	b := newBench(t)
	before := b.dump(t)
	text, device := ifbAt(b.link.Name, 8), tc.DetourName(b.link.Index)
	b.apply(t, text)
	if d := b.apply(t, text); len(d) != 0 {
		t.Errorf("again: %v", d)
	}
	for _, c := range []struct{ do, want string }{
		{"ip link del " + device, device + " is gone, so nothing arrives"},
		{"ip link set " + device + " down", device + " is down"},
		{"tc qdisc del dev " + device + " root", device + " has no queue of Weir's"},
		{"tc class change dev " + device + " parent 7e1f: classid 7e1f:1 htb rate 9mbit burst 64k quantum 65536", ""},
		{"tc qdisc replace dev " + device + " root pfifo", device + " has no queue of Weir's"},
		{"tc filter del dev " + b.link.Name + " ingress", "nothing is sent over " + device},
	} {
		b.here.Output(strings.Fields(c.do)[0], strings.Fields(c.do)[1:]...)
		s := status(t, b.Agent)
		if s.OK || len(s.Differences) != 1 || !strings.Contains(s.Differences[0].Detail, c.want) {
			t.Errorf("%s: %+v", c.do, s)
		}
		b.apply(t, text)
		b.passes(t)
	}
	b.apply(t, ifbAt(b.link.Name, 20))
	if shown := b.here.Output("tc", "class", "show", "dev", device); !strings.Contains(shown, "rate 20Mbit ceil 20Mbit") || strings.Contains(shown, "8Mbit") {
		t.Errorf("tc shows\n%s", shown)
	}
	if b.features(t.Context()).CanLimit() {
		b.apply(t, strings.Replace(text, "ifb", "pace", 1))
		b.without(t, device)
		b.apply(t, text)
	}
	b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\n", b.link.Name))
	b.without(t, device)
	if shown := b.here.Output("tc", "filter", "show", "dev", b.link.Name, "ingress"); shown != "" {
		t.Errorf("tc shows\n%s", shown)
	}
	b.apply(t, text)
	if err := b.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sameAs(t, before, "reset")
}

// without fails the test where a device is there.
func (b *bench) without(t *testing.T, device string) {
	t.Helper()
	if shown := b.here.Output("ip", "-o", "link", "show"); strings.Contains(shown, device+":") {
		t.Errorf("ip shows\n%s", shown)
	}
}

// TestDetourOfAGoneLink: the device beside a link that has gone goes with it, and where
// another link has its name then, that gets one of its own.
func TestDetourOfAGoneLink(t *testing.T) {
	needsMethod(t, policy.MethodIfb)
	testutil.Needs(t, "ip")
	b := newBench(t)
	b.apply(t, ifbAt(b.link.Name, 8))
	b.here.Output("ip", "link", "del", b.link.Name)
	if s := status(t, b.Agent); s.OK {
		t.Errorf("%+v", s)
	}
	b.here.Output("ip", "link", "add", b.link.Name, "index", strconv.Itoa(b.link.Index+1000), "type", "veth", "peer", "name", "other")
	b.apply(t, ifbAt(b.link.Name, 8))
	b.without(t, tc.DetourName(b.link.Index))
	if shown := b.here.Output("ip", "-o", "link", "show"); !strings.Contains(shown, tc.DetourName(b.link.Index+1000)+":") {
		t.Errorf("ip shows\n%s", shown)
	}
	b.here.Output("ip", "link", "del", b.link.Name)
	if err := b.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.without(t, tc.DetourName(b.link.Index+1000))
}

// TestDetourForeign: another's device of that name is left alone, and apply says what
// stands in its way and goes back.
func TestDetourForeign(t *testing.T) {
	needsMethod(t, policy.MethodIfb)
	testutil.Needs(t, "ip")
	b := newBench(t)
	device := tc.DetourName(b.link.Index)
	b.here.Output("ip", "link", "add", device, "type", "ifb")
	before := b.dump(t)
	_, err := b.tryApply(ifbAt(b.link.Name, 8))
	if err == nil || !strings.Contains(err.Error(), "the device "+device+" is not Weir's") {
		t.Errorf("%v", err)
	}
	b.sameAs(t, before, "the refusal")
}

// TestKilledDetour is TestKilledApply of a limit that an ifb holds.
func TestKilledDetour(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Proves(t, testutil.Undo)
	needsMethod(t, policy.MethodIfb)
	b := newBench(t)
	if places := b.killApply(t, ifbAt(b.link.Name, 8), stride(longStride)); places < 12 {
		t.Errorf("only %d places to break off", places)
	}
}

// TestFailedDetour is TestFailedApply of one.
func TestFailedDetour(t *testing.T) {
	t.Parallel() // nothing is measured
	needsMethod(t, policy.MethodIfb)
	b := newBench(t)
	b.failApply(t, ifbAt(b.link.Name, 8), stride(longStride))
}

// TestKilledDetourChange kills the change from an ifb to none, and a reset, at every place.
func TestKilledDetourChange(t *testing.T) {
	t.Parallel() // nothing is measured
	needsMethod(t, policy.MethodIfb)
	b := newBench(t)
	before := b.dump(t)
	with, without := ifbAt(b.link.Name, 8), fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\n", b.link.Name)
	for _, v := range []victim{{Verb: "apply", Policy: without}, {Verb: "reset"}} {
		for v.KillAt = 1; ; v.KillAt += stride(limitsStride) {
			b.apply(t, with)
			if !b.suffer(t, v) {
				break
			}
			b.passes(t)
			if v.Verb == "apply" {
				for _, text := range []string{without, with} {
					if _, err := b.tryApply(text); err != nil {
						t.Fatalf("place %d: apply: %v", v.KillAt, err)
					}
					if d := b.apply(t, text); len(d) != 0 {
						t.Fatalf("place %d: not finished: %v", v.KillAt, d)
					}
				}
			}
			if err := b.Reset(context.Background()); err != nil {
				t.Fatalf("place %d: reset: %v", v.KillAt, err)
			}
			b.sameAs(t, before, fmt.Sprintf("place %d of %s: reset", v.KillAt, v.Verb))
		}
	}
}
