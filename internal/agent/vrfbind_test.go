package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// in is the terms of a VRF alone; "" for none.
func in(vrf string) Terms { return Terms{VRF: &vrf} }

// outsider makes a VRF that is none of Weir's, and moves the bench's link into it.
func (b *bench) outsider(t *testing.T, name string) {
	t.Helper()
	for _, args := range []string{"link add NAME type vrf table 2000", "link set NAME up", "link set LINK master NAME"} {
		b.here.Output("ip", strings.Fields(strings.NewReplacer("NAME", name, "LINK", b.link.Name).Replace(args))...)
	}
}

// connections are the near ends of connections to an address, each with the device that it is
// bound to, as ss tells.
func (b *bench) connections(to netip.Addr) map[string]bool {
	ends := map[string]bool{}
	for line := range strings.Lines(b.here.Output("ss", "-Htn", "dst", to.String())) {
		if fields := strings.Fields(line); len(fields) > 3 {
			ends[fields[3]] = true
		}
	}
	return ends
}

// TestSetVRF binds the new sockets of a process, or a cgroup, to a VRF that somebody else made and
// to one of a policy, takes that back, and has either VRF go away.
func TestSetVRF(t *testing.T) {
	testutil.Needs(t, "vrf link", "ip", "ss", "sock_create", "BTF")
	for _, name := range []string{"process", "cgroup"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			d, ctx := b.deaf(t), context.Background()
			text := fmt.Sprintf("version: 1\nlinks: {%s: {rate: 100Mbit}}\n", b.link.Name)
			b.apply(t, text)
			w, err := traffic.StartWorker(b.here.Path(), dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Close() })
			of, pid := selector(t, group), uint32(w.PID())
			give := func(terms Terms) error { return b.Set(ctx, pid, terms) }
			clear := func() error { return b.Clear(ctx, pid) }
			if name == "cgroup" {
				give = func(terms Terms) error { return b.SetGroup(ctx, of, terms) }
				clear = func() error { return b.ClearGroup(ctx, of) }
			}
			send := func() error { return w.Send(ctx, traffic.Where{To: d.at}, 1) }
			bound := func(vrf string) {
				t.Helper()
				before := b.connections(d.at.Addr())
				if err := send(); err != nil {
					t.Errorf("in %q: %v", vrf, err)
				}
				after, found := b.connections(d.at.Addr()), false
				for end := range after {
					_, device, _ := strings.Cut(end, "%")
					device, _, _ = strings.Cut(device, ":")
					found = found || !before[end] && device == vrf
				}
				if !found {
					t.Errorf("no new connection is bound to %q: %v, before %v", vrf, after, before)
				}
			}
			holds := func(vrf, text string) {
				t.Helper()
				bound(vrf)
				s := status(t, b.Agent)
				if !s.OK || len(s.Sets) != 1 || s.Sets[0].Terms != "vrf "+vrf || s.Sets[0].VRF != vrf {
					t.Errorf("want a set of vrf %s, status is %+v", vrf, s)
				}
				if changes := b.apply(t, text); len(changes) > 0 {
					t.Errorf("an apply changes %v", changes)
				}
			}
			free := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				bound("")
				if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 {
					t.Errorf("status: %+v", s)
				}
			}
			refused := func(text string) {
				t.Helper()
				if _, err := b.tryApply(text); err == nil || !strings.Contains(err.Error(), "VRF") || !strings.Contains(err.Error(), "would be here") {
					t.Errorf("an apply without the VRF: %v", err)
				}
			}

			if err := give(in("blue")); !errors.Is(err, ErrUnknownVRF) {
				t.Errorf("without that VRF: %v", err)
			}
			b.outsider(t, "blue")
			if err := send(); err == nil {
				t.Error("a socket is in the VRF by itself")
			}
			if err := give(in("blue")); err != nil {
				t.Fatal(err)
			}
			holds("blue", text)
			b.here.Output("ip", "link", "del", "blue")
			if err := send(); err == nil {
				t.Error("without the VRF a socket is outside of it")
			}
			if s := status(t, b.Agent); s.OK || !strings.Contains(s.Promises[0].Evidence, "no VRF blue here") || s.Promises[0].Verdict != plan.Broken {
				t.Errorf("without the VRF: %+v", s)
			}
			refused(text)
			b.outsider(t, "blue")
			if changes := b.apply(t, text); len(changes) != 1 {
				t.Errorf("with the VRF an apply changes %v", changes)
			}
			holds("blue", text)
			b.here.Output("ip", "link", "del", "blue")
			free(clear())

			both := text + strings.TrimPrefix(b.mgmtPolicy(), "version: 1\n")
			b.apply(t, both)
			if err := give(in("mgmt")); err != nil {
				t.Fatal(err)
			}
			holds("mgmt", both)
			refused(text)
			elsewhere, err := traffic.StartWorker(b.there.Path(), dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { elsewhere.Close() })
			if err := b.Set(ctx, uint32(elsewhere.PID()), in("mgmt")); !errors.Is(err, ErrOtherNetns) {
				t.Errorf("for a process of another namespace: %v", err)
			}
			if err := b.Reset(ctx); err != nil {
				t.Fatal(err)
			}
			bound("")
			b.apply(t, both)
			if err := errors.Join(give(in("mgmt")), give(in(""))); err != nil {
				t.Fatal(err)
			}
			if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 {
				t.Errorf("taken back: %+v", s)
			}
			if err := send(); err == nil {
				t.Error("taken back, a socket is in the VRF")
			}
		})
	}
}
