package bpf

import (
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestAttachSocketsUpdates publishes a second generation: the attachment stays
// one, and the sockets that are made afterwards are seen by the new program.
func TestAttachSocketsUpdates(t *testing.T) {
	w := newWire(t)
	if w.room.SocketsAttached() {
		t.Error("attached before it was")
	}
	exe := copyOfTest(t)
	c := startChild(t, w.here, childOptions{exe: exe, cgroup: w.room.Cgroup})
	rules := noRules()
	for n, change := range []func(){func() {}, func() { rules.Exes[exeOf(t, exe)] = plan.FirstID + 1 }} {
		change()
		w.publish(rules, bare)
		if !w.room.SocketsAttached() {
			t.Fatal("not attached")
		}
		if n := onCgroup(t, w.room); n != 1 {
			t.Fatalf("%d programs are attached", n)
		}
		w.expect([]int{ladderClass, firstClass + 1}[n], 1, func() { c.do("udp %s", w.to4(4000)) })
	}
}

// TestAttachRefused has something else pinned where an attachment should be: it
// stays, and is named.
func TestAttachRefused(t *testing.T) {
	testutil.Needs(t, "tcx")
	w := newWire(t)
	g := begin(t, w.room, 1, noRules(), bare)
	load(t, g, w.link.Index, noRules(), promises(0))
	path := w.room.linkPin(w.link.Index)
	foreign := newTable(t, ebpf.Hash, 1)
	if err := foreign.Pin(path); err != nil {
		t.Fatal(err)
	}
	var err error
	w.here.Do(func() { err = g.AttachLink(w.link.Index) })
	if err == nil || !strings.Contains(err.Error(), "open "+path) {
		t.Errorf("attached over a pin that is none of ours: %v", err)
	}
	if err := foreign.Unpin(); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// TestScopesSideBySide gives one link to two rooms: each has its own program.
func TestScopesSideBySide(t *testing.T) {
	testutil.Needs(t, "tcx")
	w := newWire(t)
	g := w.publish(ports(4000), bare)
	other := newRoom(t)
	o := begin(t, other, 1, noRules(), bare)
	load(t, o, w.link.Index, noRules(), plan.LinkRules{L2: 14, Contracts: map[plan.ContractID]plan.Promise{plan.Unclaimed: {Priority: plan.Keep}}})
	var err error
	w.here.Do(func() { err = o.AttachLink(w.link.Index) })
	if err != nil {
		t.Fatal(err)
	}
	w.expect(firstClass, 1, func() { w.udp("udp4", w.to4(4000), nil) })
	if c := w.count(t, g, plan.FirstID); c.Packets != 1 {
		t.Errorf("the first scope counted %+v", c)
	}
	if c := w.count(t, o, plan.Unclaimed); c.Packets == 0 {
		t.Errorf("the second scope counted %+v", c)
	}
	if err := other.Remove(); err != nil {
		t.Fatal(err)
	}
	w.expect(firstClass, 1, func() { w.udp("udp4", w.to4(4000), nil) })
}

// onCgroup counts the programs that see a room's sockets being made.
func onCgroup(t *testing.T, r Room) int {
	t.Helper()
	dir, err := os.Open(r.Cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	found, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()), Attach: ebpf.AttachCGroupInetSockCreate})
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Programs)
}

// TestAhead puts a program of somebody else's before ours and one behind it.
func TestAhead(t *testing.T) {
	testutil.Needs(t, "tcx")
	w := newWire(t)
	w.publish(ports(4000), bare)
	ahead := func() (names []string) {
		t.Helper()
		var err error
		w.here.Do(func() { names, err = w.room.Ahead(w.link.Index) })
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	other, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "theirs", Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, tt := range []struct {
		anchor link.Anchor
		want   []string
	}{
		{link.Tail(), nil},
		{link.Head(), []string{"theirs"}},
	} {
		var l link.Link
		w.here.Do(func() {
			l, err = link.AttachTCX(link.TCXOptions{Interface: w.link.Index, Program: other, Attach: ebpf.AttachTCXEgress, Anchor: tt.anchor})
		})
		if err != nil {
			t.Fatal(err)
		}
		got := ahead()
		if len(got) != len(tt.want) || len(got) == 1 && !strings.Contains(got[0], tt.want[0]) {
			t.Errorf("ahead of ours: %q, want %q", got, tt.want)
		}
		l.Close()
	}
}
