package bpf

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// Where the link has no queue of ours what keeps its priority is left alone, and what a contract says is written all
// the same.
func TestEgressWithoutQueue(t *testing.T) {
	w := newWire(t)
	l := w.promises()
	l.NoQueue = true
	w.publishTo(flowRules([]plan.Tuple{{Fields: plan.FieldPort}}, plan.FlowKey{Port: 1000}), l, bare)
	for port, class := range map[int]int{1000: firstClass, 4000: otherClass} {
		w.expect(class, 1, func() {
			w.udp("udp4", w.to4(port), func(c *net.UDPConn) { setInt(t, c, unix.SOL_SOCKET, unix.SO_PRIORITY, 5) })
		})
	}
}

func TestEgressByHeaders(t *testing.T) {
	testutil.Proves(t, testutil.Forwarded)
	w := newWire(t)
	far4 := w.far.IPv4.Addr().As16()
	far6 := w.far.IPv6.Addr().As16()
	w.publish(flowRules(
		[]plan.Tuple{
			{Fields: plan.FieldAddress | plan.FieldPort, Bits: 128},
			{Fields: plan.FieldPort | plan.FieldProtocol},
			{Fields: plan.FieldPort},
			{Fields: plan.FieldDSCP},
		},
		plan.FlowKey{Tuple: 0, Family: 4, Address: far4, Port: 1000},
		plan.FlowKey{Tuple: 0, Family: 6, Address: far6, Port: 1000},
		plan.FlowKey{Tuple: 1, Protocol: unix.IPPROTO_UDP, Port: 2000},
		plan.FlowKey{Tuple: 2, Port: 3000},
		plan.FlowKey{Tuple: 3, DSCP: 46},
	), bare)
	for name, c := range map[string]struct {
		network, to string
		class       int
	}{
		"address and port":        {"udp4", w.to4(1000), firstClass},
		"address and port, v6":    {"udp6", w.to6(1000), firstClass + 1},
		"protocol and port":       {"udp4", w.to4(2000), firstClass + 2},
		"protocol and port, v6":   {"udp6", w.to6(2000), firstClass + 2},
		"port":                    {"udp4", w.to4(3000), firstClass + 3},
		"port, v6":                {"udp6", w.to6(3000), firstClass + 3},
		"nobody's, lowest ladder": {"udp4", w.to4(4000), ladderClass},
	} {
		t.Run(name, func(t *testing.T) {
			w.expect(c.class, 1, func() { w.udp(c.network, c.to, nil) })
		})
	}
	t.Run("dscp", func(t *testing.T) {
		w.expect(firstClass+4, 1, func() {
			w.udp("udp4", w.to4(4000), func(c *net.UDPConn) { setInt(t, c, unix.IPPROTO_IP, unix.IP_TOS, 46<<2) })
		})
		w.expect(firstClass+4, 1, func() {
			w.udp("udp6", w.to6(4000), func(c *net.UDPConn) { setInt(t, c, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 46<<2) })
		})
	})
	t.Run("IP_TOS takes nothing away", func(t *testing.T) {
		w.expect(firstClass+3, 1, func() {
			w.udp("udp4", w.to4(3000), func(c *net.UDPConn) { setInt(t, c, unix.IPPROTO_IP, unix.IP_TOS, 0x10) })
		})
	})
	t.Run("unclaimed keeps SO_PRIORITY", func(t *testing.T) {
		w.expect(ladderClass+5, 1, func() {
			w.udp("udp4", w.to4(4000), func(c *net.UDPConn) { setInt(t, c, unix.SOL_SOCKET, unix.SO_PRIORITY, 5) })
		})
	})
	t.Run("unclaimed keeps a class of somebody else's", func(t *testing.T) {
		w.expect(otherClass, 1, func() {
			w.udp("udp4", w.to4(4000), func(c *net.UDPConn) { setInt(t, c, unix.SOL_SOCKET, unix.SO_PRIORITY, 0x10001) })
		})
	})
	t.Run("one socket to several ports", func(t *testing.T) {
		var c *net.UDPConn
		var err error
		w.here.Do(func() { c, err = net.ListenUDP("udp4", nil) })
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 2 { // the second round would meet what the first had cached
			for port, class := range map[int]int{2000: firstClass + 2, 3000: firstClass + 3, 4000: ladderClass} {
				w.expect(class, 1, func() {
					if _, err := c.WriteToUDP([]byte("x"), &net.UDPAddr{IP: w.far.IPv4.Addr().AsSlice(), Port: port}); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	})
}

func setInt(t *testing.T, c *net.UDPConn, level, option, value int) {
	t.Helper()
	descriptor(t, c, func(fd int) {
		if err := unix.SetsockoptInt(fd, level, option, value); err != nil {
			t.Error(err)
		}
	})
}

// TestEgressTCP claims connections by port, from the SYN on: those that are made
// here and those that are accepted.
func TestEgressTCP(t *testing.T) {
	testutil.Proves(t, testutil.Forwarded)
	w := newWire(t)
	w.publish(ports(1000, 2000), bare)
	for name, to := range map[string]string{"v4": w.to4(1000), "v6": w.to6(1000)} {
		t.Run("connect "+name, func(t *testing.T) {
			l := w.listen(w.there, to)
			defer l.Close()
			const packets = 4 // SYN, ACK, data, FIN
			w.expect(firstClass, packets, func() {
				c := w.dial(w.here, to)
				exchange(t, c, accept(t, l))
			})
		})
	}
	for name, at := range map[string]string{
		"v4": net.JoinHostPort(w.link.IPv4.Addr().String(), "2000"), "v6": net.JoinHostPort(w.link.IPv6.Addr().String(), "2000"),
	} {
		t.Run("accept "+name, func(t *testing.T) {
			l := w.listen(w.here, at)
			defer l.Close()
			const packets = 4 // SYN-ACK, ACK, data, FIN
			w.expect(firstClass+1, packets, func() {
				c := w.dial(w.there, at)
				exchange(t, accept(t, l), c)
			})
		})
	}
}

// TestEgressReconnect connects one socket twice: what was found for the first
// connection must not stick to the second.
func TestEgressReconnect(t *testing.T) {
	w := newWire(t)
	w.publish(ports(1000, 2000), bare)
	one, two := w.listen(w.there, w.to4(1000)), w.listen(w.there, w.to4(2000))
	var fd int
	var err error
	connect := func(port int) {
		w.here.Do(func() {
			err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: w.far.IPv4.Addr().As4()})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	w.here.Do(func() { fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) })
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	w.expect(firstClass, 3, func() { connect(1000); accept(t, one) })
	// AF_UNSPEC takes the connection back and sends a reset on it.
	w.expect(firstClass, 1, func() {
		var unspec [16]byte // struct sockaddr of AF_UNSPEC
		if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspec)), 16); e != 0 {
			t.Fatal(e)
		}
	})
	w.expect(firstClass+1, 3, func() { connect(2000); accept(t, two) })
}

// TestEgressReset has the kernel refuse connections: its own socket for resets
// is one for all of them, and must not keep what was found for the first.
func TestEgressReset(t *testing.T) {
	w := newWire(t)
	w.publish(ports(1000, 2000), bare)
	for _, c := range []struct {
		port  string
		class int
	}{{"1000", firstClass}, {"2000", firstClass + 1}, {"3000", ladderClass}, {"1000", firstClass}} {
		w.expect(c.class, 1, func() {
			w.there.Do(func() {
				if c, err := net.Dial("tcp4", net.JoinHostPort(w.link.IPv4.Addr().String(), c.port)); err == nil {
					c.Close()
					t.Error("connected to a port where nobody listens")
				}
			})
		})
	}
}

// TestEgressWithoutEthernet sends over a device whose packets start with the IP
// header.
func TestEgressWithoutEthernet(t *testing.T) {
	testutil.Needs(t, "tcx", "tun link")
	room, ns := newRoom(t), testutil.NewNamespace(t)
	tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun0"}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI, Queues: 1}
	rules := ports(1000, 2000)
	g := begin(t, room, 1, rules, bare)
	l := promises(2)
	l.L2 = 0
	var err error
	ns.Do(func() {
		if err = netlink.LinkAdd(tun); err != nil {
			return
		}
		err = errors.Join(netlink.LinkSetUp(tun),
			netlink.AddrAdd(tun, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 9, 0, 1), Mask: net.CIDRMask(24, 32)}}),
			netlink.AddrAdd(tun, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("fd09::1"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tun.Fds[0].Close() })
	load(t, g, tun.Index, rules, l)
	ns.Do(func() { err = g.AttachLink(tun.Index) })
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"10.9.0.2:1000", "[fd09::2]:2000", "10.9.0.2:2000"} {
		ns.Do(func() {
			var c net.Conn
			if c, err = net.Dial("udp", to); err == nil {
				_, err = c.Write([]byte("x"))
				c.Close()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := g.Counters(tun.Index)
	want := map[plan.ContractID]Counter{
		plan.FirstID: {Packets: 1, Bytes: 29}, plan.FirstID + 1: {Packets: 2, Bytes: 29 + 49},
	}
	for id, c := range want {
		if got[id] != c || err != nil {
			t.Errorf("contract %d: counted %+v, want %+v (%v)", id, got[id], c, err)
		}
	}
	if got[plan.Unclassified].Packets != 0 {
		t.Errorf("%d packets are unclassified", got[plan.Unclassified].Packets)
	}
}

// TestEgressVLAN sends over VLAN devices on top of the link: of their tags the outer
// one is not in the packet yet, but beside it.
func TestEgressVLAN(t *testing.T) {
	testutil.Needs(t, "vlan link")
	w := newWire(t)
	w.publish(ports(4000), bare)
	parents := []int{w.link.Index, w.far.Index}
	for tags := 1; tags <= 2; tags++ {
		t.Run(fmt.Sprintf("%d tags", tags), func(t *testing.T) {
			for i, ns := range []*testutil.Namespace{w.here, w.there} {
				l := &netlink.Vlan{
					LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("vlan%d", tags), ParentIndex: parents[i]}, VlanId: tags,
				}
				address := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 200, byte(tags), byte(i+1)), Mask: net.CIDRMask(24, 32)}}
				var err error
				ns.Do(func() {
					if err = netlink.LinkAdd(l); err == nil {
						err = errors.Join(netlink.LinkSetUp(l), netlink.AddrAdd(l, address))
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				parents[i] = l.Index
			}
			w.expect(firstClass, 1, func() { w.udp("udp4", fmt.Sprintf("10.200.%d.2:4000", tags), nil) })
		})
	}
}

// TestEgressPolicyChange moves open sockets to another contract by publishing
// another generation.
func TestEgressPolicyChange(t *testing.T) {
	testutil.Proves(t, testutil.Forwarded)
	w := newWire(t)
	l := w.listen(w.there, w.to4(1000))
	w.publish(ports(1000), bare)
	c := w.dial(w.here, w.to4(1000))
	accept(t, l)
	send := func() {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(firstClass, 1, send)
	w.publish(ports(7, 1000), bare)
	w.expect(firstClass+1, 1, send)
	w.publish(noRules(), bare)
	w.expect(ladderClass, 1, send)
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends a request from a and its answer and closes both ends, b first:
// TIME_WAIT, which has no socket to ask, is then on its side.
func exchange(t *testing.T, a, b net.Conn) {
	t.Helper()
	answer(t, a, b)
	answer(t, b, a)
	b.Close()
	_, _ = io.Copy(io.Discard, a)
	a.Close()
}
