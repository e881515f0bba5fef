package agent

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// A street is client, router and server; the router's way to the server is
// the bottleneck.
type street struct {
	*Agent
	client, router, server *testutil.Namespace
	in                     testutil.End // the router's end of the way to the client
	out                    testutil.End // and of the bottleneck
	target                 testutil.End // the server's
}

func newStreet(t *testing.T) *street {
	t.Helper()
	testutil.Needs(t, "root", "cgroup2")
	s := &street{client: testutil.NewNamespace(t), router: testutil.NewNamespace(t), server: testutil.NewNamespace(t)}
	home, gateway := testutil.Veth(t, s.client, s.router, testutil.VethOptions{})
	s.in = gateway
	s.out, s.target = testutil.Veth(t, s.router, s.server, testutil.VethOptions{})
	route := func(ns *testutil.Namespace, at testutil.End, to testutil.End, via testutil.End) {
		ns.Do(func() {
			if err := netlink.RouteAdd(&netlink.Route{
				LinkIndex: at.Index, Dst: prefixNet(to), Gw: via.IPv4.Addr().AsSlice(),
			}); err != nil {
				t.Errorf("add route: %v", err)
			}
		})
	}
	route(s.client, home, s.target, gateway)
	route(s.server, s.target, home, s.out)
	s.router.Do(func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
			t.Errorf("forward: %v", err)
		}
	})
	s.Agent = &Agent{
		Version: "test",
		Scope: state.Scope{
			Cgroup: testutil.Cgroup2(t), Pins: filepath.Join(testutil.BPFFS(t), "weir"), Run: t.TempDir(), Netns: s.router.Path(),
		},
	}
	t.Cleanup(func() {
		if err := s.Reset(context.Background()); err != nil {
			t.Errorf("reset: %v", err)
		}
	})
	return s
}

// line puts a plain line of 100 Mbit/s at the bottleneck, as any device is one.
func (s *street) line(t *testing.T) {
	t.Helper()
	s.router.Output("tc", "qdisc", "replace", "dev", s.out.Name, "root", "handle", "9:", "tbf",
		"rate", "100mbit", "burst", "32kb", "limit", "64kb")
}

// sshd runs a real sshd and returns the arguments that make ssh and scp reach it.
func sshd(t *testing.T, ns *testutil.Namespace, address string) []string {
	t.Helper()
	server, client := testutil.SSH(t, address)
	var log strings.Builder
	start(t, ns, "", &log, "sshd", server...)
	time.Sleep(500 * time.Millisecond)
	return client
}

// TestScp copies a file with a real scp through the router while iperf3 fills
// the line, with priority for ssh: all of it goes by ssh's class, and nothing of
// the rival's before it. What that makes of the copy's time is for the lab to
// measure.
func TestScp(t *testing.T) {
	s := newStreet(t)
	options := sshd(t, s.server, s.target.IPv4.Addr().String())
	const size = 20 << 20
	dir := t.TempDir()
	file, copied := filepath.Join(dir, "file"), filepath.Join(dir, "copy")
	if err := os.WriteFile(file, bytes.Repeat([]byte("weir"), size/4), 0o600); err != nil {
		t.Fatal(err)
	}
	iperfServer(t, s.server, 5201)
	s.line(t)
	start(t, s.client, "", nil, "iperf3", "--client", s.target.IPv4.Addr().String(), "--port", "5201", "--time", "60")
	time.Sleep(time.Second)
	const rate = 100
	text := fmt.Sprintf("version: 1\nlinks:\n  %s: {rate: %dMbit, adopt: true}\nworkloads:\n  ssh:\n    match: [{port: 22, protocol: tcp}]\n    priority: 15\n", s.out.Name, rate)
	p, err := policy.Parse("scp.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(context.Background(), p, []byte(text)); err != nil {
		t.Fatal(err)
	}
	looks := watch(t, s.Agent, s.out.Name)
	var out strings.Builder
	args := append(slices.Clone(options), file, fmt.Sprintf("root@%s:%s", s.target.IPv4.Addr(), copied))
	wait(t, start(t, s.client, "", &out, "scp", args...), &out)
	if !holds(t, looks(), 15, rate) {
		t.Error("the line was not full")
	}
	if a, b := testutil.Output(t, "sha256sum", file), testutil.Output(t, "sha256sum", copied); a[:64] != b[:64] {
		t.Errorf("the copy is not the file:\n%s%s", a, b)
	}
	classes, err := s.Class(s.out.Name)
	if err != nil {
		t.Fatal(err)
	}
	ssh := classes[slices.IndexFunc(classes, func(c Class) bool { return slices.Contains(c.Levels, 15) })]
	if ssh.Bytes < size || ssh.Bytes > size*5/4 {
		t.Errorf("ssh's class sent %d bytes for a file of %d", ssh.Bytes, size)
	}
	if err := s.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if out := s.router.Output("tc", "qdisc", "show", "dev", s.out.Name); !strings.Contains(out, "qdisc tbf 9: root") {
		t.Fatalf("reset did not put the line back:\n%s", out)
	}
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[len(s)/2]
}

func prefixNet(e testutil.End) *net.IPNet {
	p := e.IPv4.Masked()
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}
