package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/inside"
	"github.com/weir-net/weir/internal/lab/names"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

var vrfInfo = Info{
	Name:    "vrf",
	Summary: "a management network in a VRF of its own, beside a data network with the same addresses: names, connections, and sessions that were open",
	Arms:    []string{"default", "vrf_broken_dns", "vrf_fixed"},
}

// The VRF of the lab, and the link that moves into it.
const (
	vrfName = "mgmt"
	vrfLink = "eth0"
)

// What there is on either network: a name server, and the addresses that the two servers give
// to every name. Both networks have all of it, and only who answers tells them apart.
const (
	nameServer  = "10.99.9.2"
	dataAnswer  = "10.99.9.20"
	mgmtAnswer  = "10.99.9.30"
	stubAddress = "127.0.0.53"
)

// A network is one of the two that the host is in.
type network struct {
	name    string
	near    hosts.Plug
	far     hosts.Plug
	answer  netip.Addr // what its name server says
	servers *names.Server
}

// A vrfLab is a host with two networks, data and management, whose addresses are the same but for
// those by which the host's sessions go. Each has a name server; the host has a stub, which its
// resolv.conf names.
type vrfLab struct {
	*session
	getent string
	tries  int // lookups, connections and sessions of each kind in a repetition

	host       *hosts.Host
	data, mgmt network
	place      *inside.Place
	sessions   []*traffic.Asker // the first half over IPv4, the others over IPv6
	toSession  [2]traffic.Where // by IPv4, by IPv6
	toEcho     [2]traffic.Where
	passenger  *traffic.Worker // watches the management link from its far end
	cause      string          // what the doctor found, in the last repetition
	mended     []netip.Addr    // the servers that it chose
}

func runVRF(ctx context.Context, s *session) error {
	return (&vrfLab{session: s, tries: 5}).run(ctx)
}

// needsVRF says why there can be no such lab on this host.
func needsVRF() error {
	if err := host.VRFPossible(); err != nil {
		return err
	}
	if _, err := exec.LookPath("getent"); err != nil {
		return fmt.Errorf("names are looked up by getent, of the C library: %w", err)
	}
	return nil
}

func (l *vrfLab) run(ctx context.Context) error {
	if s := l.Scheduler; s != policy.Auto {
		return fmt.Errorf("scheduler %s: a VRF has no queue", s)
	}
	var err error
	if l.getent, err = exec.LookPath("getent"); err != nil {
		return err
	}
	if l.getent, err = filepath.Abs(l.getent); err != nil {
		return err
	}
	if err := l.build(ctx); err != nil {
		return err
	}
	for repetition := 1; repetition <= l.Repetitions; repetition++ {
		if err := l.repeat(ctx, repetition); err != nil {
			return err
		}
	}
	l.conclude()
	return nil
}

// build makes the networks. The data network's wire is the first, so that its route is the one
// by which addresses of both are reached where there is no VRF.
func (l *vrfLab) build(ctx context.Context) error {
	var err error
	if l.host, err = l.net.Host("host"); err != nil {
		return err
	}
	l.data = network{name: "data", answer: netip.MustParseAddr(dataAnswer)}
	l.mgmt = network{name: "management", answer: netip.MustParseAddr(mgmtAnswer)}
	l.data.near = plug(l.host, "data", "10.99.9.1/24", "fd99:9::1/64")
	l.mgmt.near = plug(l.host, vrfLink, "10.99.8.1/24", "fd99:8::1/64", "10.99.9.11/24", "fd99:9::11/64")
	for _, n := range []*network{&l.data, &l.mgmt} {
		own := []string{}
		if n == &l.mgmt {
			own = []string{"10.99.8.2/24", "fd99:8::2/64"}
		}
		far, err := l.net.Host(n.name)
		if err != nil {
			return err
		}
		n.far = plug(far, "lan", append(own, nameServer+"/24", dataAnswer+"/24", mgmtAnswer+"/24", "fd99:9::2/64")...)
		if err := hosts.Wire(n.near, n.far, hosts.Segments(uint64(l.Rate))); err != nil {
			return err
		}
		if err := l.serve(n); err != nil {
			return err
		}
	}
	if err := l.hostServices(ctx); err != nil {
		return err
	}
	cgroup, err := makeCgroup(l.Controller.Cgroup(), "host")
	if err != nil {
		return err
	}
	l.onClose(func() error { return RemoveCgroups(cgroup) })
	l.place, err = inside.New(l.host.Netns(), cgroup, resolvedFiles())
	l.place, err = closing(l.session, l.place, err)
	return err
}

// serve starts what answers on a network.
func (l *vrfLab) serve(n *network) (err error) {
	netns := n.far.Host.Netns()
	n.servers, err = names.Serve(netns, netip.AddrPortFrom(netip.MustParseAddr(nameServer), 53), n.answer)
	if n.servers, err = closing(l.session, n.servers, err); err != nil {
		return err
	}
	// At whichever address: who is reached is told by the word alone.
	greeter, err := traffic.Greet(netns, netip.AddrPortFrom(netip.IPv4Unspecified(), servicePort), n.name)
	_, err = closing(l.session, greeter, err)
	return err
}

// servicePort is where connections by name go.
const servicePort = 80

// hostServices starts the stub, what has sessions, and who watches the link from both ends: processes
// of their own, since the lab's may be busy with the very move.
func (l *vrfLab) hostServices(ctx context.Context) error {
	netns, far := l.host.Netns(), l.mgmt.far.Host.Netns()
	stub, err := names.ServeStub(netns, netip.AddrPortFrom(netip.MustParseAddr(stubAddress), 53), "lo", netip.AddrPortFrom(netip.MustParseAddr(nameServer), 53))
	if _, err = closing(l.session, stub, err); err != nil {
		return err
	}
	echoes, err := traffic.StartWorker(netns, "")
	if _, err = closing(l.session, echoes, err); err != nil {
		return err
	}
	l.passenger, err = traffic.StartWorker(far, "")
	if l.passenger, err = closing(l.session, l.passenger, err); err != nil {
		return err
	}
	for i, address := range []string{"10.99.8.1", "fd99:8::1"} {
		at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(address), port) }
		l.toSession[i] = traffic.Where{Netns: far, To: at(22), Congestion: l.result.Environment.Congestion}
		l.toEcho[i] = traffic.Where{To: at(7), Congestion: l.result.Environment.Congestion}
		server, err := traffic.Serve(netns, l.toSession[i].To)
		if _, err = closing(l.session, server, err); err != nil {
			return err
		}
		if err := echoes.Echo(ctx, l.toEcho[i].To); err != nil {
			return err
		}
	}
	return nil
}

// resolvedFiles are such as a host has whose names systemd-resolved looks up.
func resolvedFiles() inside.Files {
	return inside.Files{
		Texts: map[string]string{
			"/etc/hosts":                            "127.0.0.1 localhost\n",
			"/etc/nsswitch.conf":                    "hosts: files dns\n",
			"/run/systemd/resolve/stub-resolv.conf": "nameserver " + stubAddress + "\noptions edns0 trust-ad\n",
			"/run/systemd/resolve/resolv.conf":      "nameserver " + nameServer + "\n",
		},
		Links: map[string]string{"/etc/resolv.conf": "../run/systemd/resolve/stub-resolv.conf"},
	}
}

func (l *vrfLab) policy() string {
	return fmt.Sprintf("version: 1\nvrfs:\n  %s: {table: 1000, links: [%s]}\n", vrfName, vrfLink)
}

// repeat makes all arms once, one out of the other: before, moved, mended; and puts back what was.
func (l *vrfLab) repeat(ctx context.Context, repetition int) error {
	defer l.hangUp()
	for _, arm := range []struct {
		name   string
		change func(context.Context) error // into it
		vrf    string                      // of what is looked up
	}{
		{"default", l.open, ""},
		{"vrf_broken_dns", l.move, vrfName},
		{"vrf_fixed", l.mend, vrfName},
	} {
		l.progress("repetition %d of %d: %s", repetition, l.Repetitions, arm.name)
		err := arm.change(ctx)
		if err == nil {
			err = l.look(ctx, arm.name, arm.vrf)
		}
		if err != nil {
			return fmt.Errorf("arm %s: %w", arm.name, err)
		}
	}
	if err := l.back(ctx); err != nil {
		return fmt.Errorf("take it back: %w", err)
	}
	l.measured("vrf_fixed", "session_back", "%", l.alive(ctx))
	return nil
}
