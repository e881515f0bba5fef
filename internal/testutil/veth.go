package testutil

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// An End is one side of a veth pair, up and addressed in its namespace.
type End struct {
	NS    *Namespace
	Name  string // "va" or "vb" followed by the pair's number
	Index int
	IPv4  netip.Prefix // 10.x.y.1/24 on the first end, .2 on the second; x and y count the pairs
	IPv6  netip.Prefix // fd00:n::1/64 on the first end, ::2 on the second; usable at once
}

// VethOptions says what is unusual about a pair; its zero value is a pair with
// one queue and both addresses.
type VethOptions struct {
	Queues int // TX and RX queues of each end
	NoIP   bool
}

var pairs atomic.Uint32

// Veth joins two namespaces by a veth pair. The pair ends with either of
// them.
func Veth(t testing.TB, a, b *Namespace, opts VethOptions) (End, End) {
	t.Helper()
	n := pairs.Add(1)
	ends := [2]End{{NS: a, Name: fmt.Sprintf("va%d", n)}, {NS: b, Name: fmt.Sprintf("vb%d", n)}}
	var err error
	a.Do(func() {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = ends[0].Name
		attrs.NumTxQueues, attrs.NumRxQueues = max(opts.Queues, 1), max(opts.Queues, 1)
		err = netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: attrs, PeerName: ends[1].Name, PeerNamespace: netlink.NsFd(int(b.file.Fd())),
			PeerNumTxQueues: uint32(attrs.NumTxQueues), PeerNumRxQueues: uint32(attrs.NumRxQueues),
		})
	})
	if err != nil {
		t.Fatalf("add veth pair: %v", err)
	}
	if !opts.NoIP {
		for i := range ends {
			ends[i].IPv4, ends[i].IPv6 = prefixes(n, byte(i+1))
		}
	}
	for _, step := range []func(*End) error{(*End).up, (*End).carrier, (*End).address} {
		for i := range ends {
			e := &ends[i]
			if e.NS.Do(func() { err = step(e) }); err != nil {
				t.Fatalf("set up %s: %v", e.Name, err)
			}
		}
	}
	return ends[0], ends[1]
}

func (e *End) up() error {
	l, err := netlink.LinkByName(e.Name)
	if err != nil {
		return err
	}
	e.Index = l.Attrs().Index
	return netlink.LinkSetUp(l)
}

// carrier waits until the kernel has noticed that the other end is up too,
// which it does in a work queue of its own.
func (e *End) carrier() error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		l, err := netlink.LinkByIndex(e.Index)
		if err != nil {
			return err
		}
		if l.Attrs().OperState == netlink.OperUp {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for carrier: it is %s", l.Attrs().OperState)
		}
		time.Sleep(time.Millisecond)
	}
}

// address comes after the carrier: an IPv6 address on a device without one
// answers only when the next timer has run, a second later.
func (e *End) address() error {
	l := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: e.Name, Index: e.Index}}
	for _, p := range []netip.Prefix{e.IPv4, e.IPv6} {
		if !p.IsValid() {
			continue
		}
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD // otherwise tentative for a second
		}
		if err := netlink.AddrAdd(l, addr); err != nil {
			return fmt.Errorf("add address %s: %w", p, err)
		}
	}
	return nil
}

func prefixes(pair uint32, end byte) (v4, v6 netip.Prefix) {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(pair >> 8), byte(pair), end}), 24),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, byte(pair >> 8), byte(pair), 15: end}), 64)
}
