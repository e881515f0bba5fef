package bpf

import (
	"net"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestResolveRemembered puts answers into a connection's socket that its headers
// contradict: they count where they say so and nowhere else.
func TestResolveRemembered(t *testing.T) {
	w := newWire(t)
	w.publish(ports(1000), bare)
	s := sockets(t, w.room)
	l := w.listen(w.there, w.to4(1000))
	c := w.dial(w.here, w.to4(1000))
	accept(t, l)
	send := func() {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(firstClass, 1, send)
	for name, o := range map[string]struct {
		generation uint32
		link       linkEgressLinkNumber
		class      int
	}{
		"for this link":         {w.number, linkEgressLinkNumberFIRST_LINK, firstClass + 3},
		"for every link":        {w.number, linkEgressLinkNumberEVERY_LINK, firstClass + 3},
		"for another link":      {w.number, linkEgressLinkNumberFIRST_LINK + 1, firstClass},
		"for none":              {w.number, linkEgressLinkNumberNO_LINK, firstClass},
		"in another generation": {w.number + 1, linkEgressLinkNumberEVERY_LINK, firstClass},
	} {
		t.Run(name, func(t *testing.T) {
			descriptor(t, c, func(fd int) {
				var k linkEgressKnown
				k.Verdict.Generation, k.Verdict.Contract, k.Verdict.Link = o.generation, uint16(plan.FirstID+3), uint16(o.link)
				if err := s.verdicts.Put(uint32(fd), k); err != nil {
					t.Error(err)
				}
			})
			w.expect(o.class, 1, send)
		})
	}
}

// TestResolveLaterFragment lets a connection's first packet under a generation be
// a later fragment, whose headers say nothing: that must not stick.
func TestResolveLaterFragment(t *testing.T) {
	testutil.Needs(t, "tcx")
	w := newWire(t)
	l := w.listen(w.there, w.to4(1000))
	c := w.dial(w.here, w.to4(1000))
	accept(t, l)
	descriptor(t, c, func(fd int) {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT); err != nil {
			t.Error(err)
		}
	})
	// TCP is held to segments that are too large for the link; these 1300 bytes are one.
	var err error
	w.here.Do(func() {
		if err = os.WriteFile("/proc/sys/net/ipv4/tcp_min_snd_mss", []byte("1400"), 0); err == nil {
			err = netlink.LinkSetMTU(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: w.link.Name, Index: w.link.Index}}, 1000)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	lost := w.loseFirstFragments()
	w.publish(ports(1000), bare)
	w.expect(unclassifiedClass, 1, func() {
		if _, err := c.Write(make([]byte, 1300)); err != nil {
			t.Fatal(err)
		}
	})
	// Both halves of what TCP sends again, the later one by what is remembered.
	w.expect(firstClass, 2, func() { lost.Close() })
}

// loseFirstFragments sends them elsewhere before link_egress sees them, until it
// is closed. Of a packet whose first fragment is dropped IP would not send the rest.
func (w *wire) loseFirstFragments() link.Link {
	w.t.Helper()
	const flags, more = 14 + 6, 0x2000
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "lose_first", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadAbs(flags, asm.Half),
			asm.JEq.Imm(asm.R0, more, "lose"),
			asm.Mov.Imm(asm.R0, -1), // TCX_NEXT
			asm.Return(),
			asm.Mov.Imm(asm.R1, 1).WithSymbol("lose"), // lo
			asm.Mov.Imm(asm.R2, 1),                    // BPF_F_INGRESS
			asm.FnRedirect.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	defer p.Close()
	var l link.Link
	w.here.Do(func() {
		l, err = link.AttachTCX(link.TCXOptions{Interface: w.link.Index, Program: p, Attach: ebpf.AttachTCXEgress, Anchor: link.Head()})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	return l
}

// TestResolveSYNCookies has a tagged listener answer without keeping anything: a
// SYN-ACK that no socket is kept for goes by its headers, what follows by the tag.
func TestResolveSYNCookies(t *testing.T) {
	w := newWire(t)
	var err error
	w.here.Do(func() { err = os.WriteFile("/proc/sys/net/ipv4/tcp_syncookies", []byte("2"), 0) }) // always
	if err != nil {
		t.Fatal(err)
	}
	w.publish(ports(2000), bare)
	s := sockets(t, w.room)
	at := net.JoinHostPort(w.link.IPv4.Addr().String(), "2000")
	var config net.ListenConfig
	config.SetMultipathTCP(false) // its kernel sockets learn whose they are from the SYN-ACK
	var l net.Listener
	w.here.Do(func() { l, err = config.Listen(t.Context(), "tcp4", at) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	descriptor(t, l.(*net.TCPListener), func(fd int) {
		if _, err := s.Identify(fd, Identity{Tag: plan.Contract{ID: plan.FirstID + 1, Serial: 1}.Tag()}); err != nil {
			t.Error(err)
		}
	})
	s.Settle()
	var far, near net.Conn
	w.expect(firstClass, 1, func() {
		far = w.dial(w.there, at)
		near = accept(t, l)
	})
	w.expect(firstClass+1, 1, func() { answer(t, near, far) })
}
