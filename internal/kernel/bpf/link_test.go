package bpf

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestUpdateWithoutGap publishes again and again under traffic: not one packet
// may meet no program.
func TestUpdateWithoutGap(t *testing.T) {
	w := newWire(t)
	w.publish(ports(4000), bare)
	before := w.sent()
	stop, sent := make(chan struct{}), make(chan int)
	var c net.Conn
	var err error
	w.here.Do(func() { c, err = net.Dial("udp4", w.to4(4000)) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				sent <- n
				return
			default:
				if _, err := c.Write([]byte("x")); err == nil {
					n++
				}
			}
		}
	}()
	for range 20 {
		w.publish(ports(4000), bare)
	}
	close(stop)
	n := <-sent
	after := w.sent()
	if got := after[firstClass] - before[firstClass]; got != n || n < 1000 {
		t.Errorf("%d packets of %d went under contract: %v", got, n, after)
	}
	g, err := w.room.Open(w.number)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	counters, err := g.Counters(w.link.Index)
	if err != nil || counters[plan.FirstID].Packets != uint64(n) {
		t.Errorf("%d packets counted, want %d (%v)", counters[plan.FirstID].Packets, n, err)
	}
}

// TestDeviceComesBack takes the device away under its attachment.
func TestDeviceComesBack(t *testing.T) {
	testutil.Needs(t, "tcx", "bpftool")
	room, ns := newRoom(t), testutil.NewNamespace(t)
	g := begin(t, room, 1, noRules(), bare)
	const index = 77
	load(t, g, index, noRules(), promises(0))
	attach := func() (err error) {
		ns.Do(func() { err = g.AttachLink(index) })
		return err
	}
	if err := attach(); err == nil {
		t.Fatal("attached to a device that is not there")
	}
	dummy := func() netlink.Link {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0", Index: index, TxQLen: -1}, PeerName: "v1"}
		var err error
		ns.Do(func() { err = netlink.LinkAdd(l) })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	id, err := g.ProgramID(index)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l := dummy()
		if err := attach(); err != nil {
			t.Fatal(err)
		}
		if got := room.AttachedID(index); got != id {
			t.Errorf("program %d is attached, want %d", got, id)
		}
		if out := testutil.Output(t, "bpftool", "prog", "show", "id", fmt.Sprint(id)); !strings.Contains(out, "name link_egress") {
			t.Errorf("bpftool finds another program:\n%s", out)
		}
		ns.Do(func() { err = netlink.LinkDel(l) })
		if err != nil {
			t.Fatal(err)
		}
		if got := room.AttachedID(index); got != 0 {
			t.Errorf("program %d is attached to a device that is gone", got)
		}
	}
	if err := room.DetachLink(index); err != nil {
		t.Errorf("detach from a device that is gone: %v", err)
	}
	if err := room.DetachLink(index); err != nil {
		t.Errorf("detach again: %v", err)
	}
}

func TestCapacity(t *testing.T) {
	for highest, want := range map[plan.ContractID]uint32{
		0: 1024, 512: 1024, 513: 2048, 10_018: 16384, 65_535: 65536,
	} {
		if got := capacityFor(highest); got != want {
			t.Errorf("capacity for contract %d: %d, want %d", highest, got, want)
		}
	}
	if plan.LadderID+policy.Levels > plan.ContractID(capacityFor(0)) {
		t.Error("no room for the ladder")
	}
}

func TestLoadLinkRefused(t *testing.T) {
	g := begin(t, newRoom(t), 1, noRules(), bare)
	load(t, g, 3, noRules(), promises(0))
	if err := g.LoadLink(3, noRules(), promises(0), nil); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("loaded a link twice: %v", err)
	}
}

// TestLoadWithoutMPTCP loads what a kernel without MPTCP gets, too.
func TestLoadWithoutMPTCP(t *testing.T) {
	testutil.Needs(t, "root", "sk_storage")
	knows := features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkcToMptcpSock) == nil
	length := map[bool]int{}
	for _, mptcp := range []bool{false, knows} {
		spec, err := loadLinkEgress()
		if err != nil {
			t.Fatal(err)
		}
		if err := spec.Variables[linkEgressVarKnowsMptcp].Set(mptcp); err != nil {
			t.Fatal(err)
		}
		var objects linkEgressObjects
		if err := spec.LoadAndAssign(&objects, nil); err != nil {
			t.Fatal(err)
		}
		defer objects.Close()
		info, err := objects.LinkEgress.Info()
		if err != nil {
			t.Fatal(err)
		}
		all, err := info.Instructions()
		if err != nil {
			t.Fatal(err)
		}
		length[mptcp] = len(all)
	}
	if knows && length[true] <= length[false] {
		t.Errorf("%d instructions with MPTCP, %d without", length[true], length[false])
	}
}
