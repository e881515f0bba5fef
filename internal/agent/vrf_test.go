package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// mgmtPolicy moves the bench's link into a VRF.
func (b *bench) mgmtPolicy() string {
	return fmt.Sprintf("version: 1\nvrfs:\n  mgmt: {table: 1000, links: [%s]}\n", b.link.Name)
}

// routing is all that a VRF could leave behind, in the words of ip. Times are left out, and
// so is what the kernel finds out anew.
func (b *bench) routing() string {
	var text strings.Builder
	for _, args := range []string{
		"vrf", "rule", "-6 rule", "mrule", "-6 mrule", "route show table all", "-6 route show table all", "addr", "neigh show nud permanent", "-6 neigh show nud permanent", "-d -o link",
	} {
		var lines []string
		b.here.Do(func() {
			out := b.here.Output("ip", strings.Fields(args)...)
			lines = strings.Split(out, "\n")
		})
		fmt.Fprintf(&text, "$ ip %s\n%s\n", args, testutil.Lasting(strings.Join(lines, "\n")))
	}
	return text.String()
}

// TestVRF moves a link into a VRF and back: with all that it had, and with its reachability.
func TestVRF(t *testing.T) {
	testutil.Needs(t, "vrf link", "ip", "ping")
	b := newBench(t)
	until(t, "no address is new", func() bool { return !strings.Contains(b.routing(), " tentative") })
	before := b.routing()
	open := []*session{b.session(t, b.far.IPv4.Addr()), b.session(t, b.far.IPv6.Addr())}
	b.apply(t, b.mgmtPolicy())
	for _, to := range []string{b.far.IPv4.Addr().String(), b.far.IPv6.Addr().String()} {
		if out := b.here.Output("ip", "route", "get", "vrf", "mgmt", to); !strings.Contains(out, "dev "+b.link.Name+" table 1000") {
			t.Errorf("route to %s: %s", to, out)
		}
		b.here.Output("ping", "-c1", "-W2", "-I", "mgmt", to)
	}
	for _, c := range open {
		c.lives(t, "in the VRF")
	}
	if s, err := b.Status(context.Background()); err != nil || !s.OK || len(s.Promises) != 1 || s.Promises[0].Verdict != plan.Kept {
		t.Errorf("status %+v, %v", s, err)
	}
	if again := b.apply(t, b.mgmtPolicy()); len(again) != 0 {
		t.Errorf("once more it changes %v", again)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.routing()); diff != "" {
		t.Errorf("reset left (-before +after)\n%s", diff)
	}
	for _, c := range open {
		c.lives(t, "after the reset")
	}
	b.passes(t)
}

// A session is an open TCP connection from here to there, and back.
type session struct{ here, there net.Conn }

// session connects to an address of the far end.
func (b *bench) session(t *testing.T, to netip.Addr) *session {
	t.Helper()
	var l net.Listener
	var err error
	b.there.Do(func() { l, err = net.Listen("tcp", netip.AddrPortFrom(to, 0).String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &session{}
	b.here.Do(func() { s.here, err = net.DialTimeout("tcp", l.Addr().String(), 3*time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.here.Close() })
	if s.there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.there.Close() })
	s.lives(t, "before")
	return s
}

// lives sends a byte each way.
func (s *session) lives(t *testing.T, when string) {
	t.Helper()
	for _, ends := range [][2]net.Conn{{s.here, s.there}, {s.there, s.here}} {
		for _, c := range ends {
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		}
		begin := time.Now()
		_, err := ends[0].Write([]byte("x"))
		if err == nil {
			_, err = io.ReadFull(ends[1], make([]byte, 1))
		}
		if err != nil {
			t.Errorf("%s: from %s to %s: %v", when, ends[0].LocalAddr(), ends[0].RemoteAddr(), err)
		}
		t.Logf("%s: a byte from %s after %v", when, ends[0].LocalAddr(), time.Since(begin))
	}
}

// TestVRFOfWorkload binds the new sockets of a cgroup to a VRF, those of a cgroup below that
// has a contract of its own included, and no others.
func TestVRFOfWorkload(t *testing.T) {
	testutil.Needs(t, "vrf link", "ss", "sock_create", "BTF")
	b := newBench(t)
	d := b.deaf(t)
	worker := func(cgroup string) *traffic.Worker {
		w, err := traffic.StartWorker(b.here.Path(), cgroup)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	below := b.dir + "/below"
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	bound, deeper := worker(b.dir), worker(below)
	text := b.mgmtPolicy() + fmt.Sprintf("links: {%s: {rate: 100Mbit}}\nworkloads:\n  held: {match: [{cgroup: %s}], vrf: mgmt}\n  below: {match: [{cgroup: %s/below}], priority: 3}\n",
		b.link.Name, b.cgroup, b.cgroup)
	b.apply(t, text)
	for _, w := range []*traffic.Worker{bound, deeper} {
		if err := w.Send(context.Background(), traffic.Where{To: d.at}, 1); err != nil {
			t.Errorf("a socket of the workload: %v", err)
		}
	}
	if out := b.here.Output("ss", "-Htn", "dst", d.at.Addr().String()); strings.Count(out, "%mgmt:") != 2 {
		t.Errorf("connections: %s", out)
	}
	if err := worker("").Send(context.Background(), traffic.Where{To: d.at}, 1); err == nil {
		t.Error("a socket of somebody else is in the VRF")
	}
	s, err := b.Status(context.Background())
	if err != nil || !s.OK || len(s.Promises) != 3 {
		t.Errorf("status %+v, %v", s, err)
	}
	if x, err := b.ExplainPID(context.Background(), uint32(bound.PID())); err != nil || x.Workload != "held" || !strings.Contains(strings.Join(x.Promises, "\n"), "vrf mgmt") {
		t.Errorf("explained: %+v, %v", x, err)
	}
	if again := b.apply(t, text); len(again) != 0 {
		t.Errorf("once more it changes %v", again)
	}
	if changes := b.apply(t, b.mgmtPolicy()); len(changes) != 3 {
		t.Errorf("without workloads it changes %v", changes)
	}
}
