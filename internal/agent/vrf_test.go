package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
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

// furnish gives the bench's link all kinds of what moves with it, and waits until no address
// is new.
func (b *bench) furnish(t *testing.T) {
	t.Helper()
	far4, far6 := b.far.IPv4.Addr(), b.far.IPv6.Addr()
	for _, args := range []string{
		fmt.Sprintf("addr add %s/24 dev LINK", far4.Next()),
		"addr add 192.0.2.1 peer 192.0.2.2 dev LINK label LINK:p",
		"-6 addr add 2001:db8:7::1/64 dev LINK nodad noprefixroute",
		fmt.Sprintf("route add default via %s dev LINK proto dhcp metric 100", far4),
		fmt.Sprintf("route add default via %s dev LINK metric 200 mtu 1400 src %s", far4, far4.Next()),
		"route add 198.51.100.0/24 dev LINK scope link",
		"route add 203.0.113.0/24 via 192.0.2.77 dev LINK onlink",
		fmt.Sprintf("route add 203.0.113.0/25 nexthop via %s dev LINK weight 2 nexthop via 192.0.2.2 dev LINK", far4),
		fmt.Sprintf("route add 203.0.113.128/25 via %s dev LINK table 77", far4),
		"-6 route add default via fe80::1 dev LINK proto ra metric 1024",
		fmt.Sprintf("-6 route add 2001:db8:8::/48 via %s dev LINK", far6),
		fmt.Sprintf("-6 route add 2001:db8:9::/48 metric 5 nexthop via %s dev LINK nexthop via fe80::1 dev LINK", far6),
		"neigh add 198.51.100.7 lladdr 02:00:00:00:00:07 dev LINK nud permanent",
		"-6 neigh add fe80::1 lladdr 02:00:00:00:00:01 dev LINK nud permanent",
	} {
		b.here.Output("ip", strings.Fields(strings.ReplaceAll(args, "LINK", b.link.Name))...)
	}
	until(t, "no address is new", func() bool { return !strings.Contains(b.here.Routing(), " tentative") })
}

// routes are those of a table by the bench's link, sorted.
func (b *bench) routes(table string) string {
	lines := append(strings.Split(b.here.Output("ip", "route", "show", "table", table, "dev", b.link.Name), "\n"),
		strings.Split(b.here.Output("ip", "-6", "route", "show", "table", table, "dev", b.link.Name), "\n")...)
	lines = slices.DeleteFunc(lines, func(l string) bool {
		return l == "" || strings.HasPrefix(l, "local ") || strings.HasPrefix(l, "broadcast ") || strings.HasPrefix(l, "multicast ") || strings.HasPrefix(l, "anycast ")
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestVRF moves a link into a VRF and back: with all that it had, with what it reaches, and
// with the connections that were open.
func TestVRF(t *testing.T) {
	testutil.Proves(t, testutil.VRF)
	testutil.Needs(t, "vrf link", "ip", "ping")
	b := newBench(t)
	b.furnish(t)
	before, routes := b.here.Routing(), b.routes("main")
	open := []*session{b.session(t, b.far.IPv4.Addr()), b.session(t, b.far.IPv6.Addr())}
	b.apply(t, b.mgmtPolicy())
	if diff := cmp.Diff(routes, b.routes("1000")); diff != "" {
		t.Errorf("routes of the VRF (-before +there)\n%s", diff)
	}
	if left := b.routes("main"); left != "" {
		t.Errorf("left in the main table:\n%s", left)
	}
	for _, want := range []string{
		"route show table 77: 203.0.113.128/25", "neigh show dev LINK nud permanent: 198.51.100.7", "-6 neigh show dev LINK nud permanent: fe80::1",
		"addr show dev LINK: scope global LINK:p", "addr show dev mgmt: inet 127.0.0.1/8", "addr show dev mgmt: inet6 ::1/128",
		"rule: 1000:\tfrom all lookup [l3mdev-table]", "vrf: mgmt", "route get vrf mgmt 127.0.0.53: dev mgmt",
	} {
		args, has, _ := strings.Cut(strings.ReplaceAll(want, "LINK", b.link.Name), ": ")
		if out := b.here.Output("ip", strings.Fields(args)...); !strings.Contains(out, has) {
			t.Errorf("ip %s has no %q:\n%s", args, has, out)
		}
	}
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
	b.apply(t, strings.Replace(b.mgmtPolicy(), "1000", "1001", 1)) // by the main table
	if diff := cmp.Diff(routes, b.routes("1001")); diff != "" {
		t.Errorf("routes of another table (-before +there)\n%s", diff)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.here.Routing()); diff != "" {
		t.Errorf("reset left (-before +after)\n%s", diff)
	}
	for _, c := range open {
		c.lives(t, "after the reset")
	}
	b.passes(t)
}

// driftsOfVRF takes away what makes a VRF, each thing in turn: status says so, and an apply
// mends it.
func (b *bench) driftsOfVRF(t *testing.T) {
	t.Helper()
	for _, args := range []string{
		"link set LINK nomaster", "link set mgmt down", "addr del 127.0.0.1/8 dev mgmt", "rule del pref 1000", "-6 rule add pref 0 lookup local",
		"route del unreachable default table 1000 metric 4278198272", "rule del pref 1001 from " + b.link.IPv4.Addr().String(), "link del mgmt",
	} {
		b.here.Output("ip", strings.Fields(strings.ReplaceAll(args, "LINK", b.link.Name))...)
		if s, err := b.Status(context.Background()); err != nil || s.OK || len(s.Differences) != 1 || s.Promises[0].Verdict != plan.Broken {
			t.Errorf("ip %s: status %+v, %v", args, s, err)
		}
		if changes := b.apply(t, b.mgmtPolicy()); len(changes) != 1 {
			t.Errorf("ip %s: an apply changes %v", args, changes)
		}
	}
}

// TestKilledVRF kills an apply that moves a link, and a reset, at every place: what is left is
// finished or undone, with all that the link had and all that is declared.
func TestKilledVRF(t *testing.T) {
	testutil.Proves(t, testutil.Undo)
	testutil.Needs(t, "vrf link", "ip")
	b := newBench(t)
	b.furnish(t)
	before := b.here.Routing()
	b.apply(t, b.declaringPolicy())
	made := b.made()
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, v := range []victim{{Verb: "apply", Policy: b.declaringPolicy()}, {Verb: "reset"}} {
		for v.KillAt = 1; ; v.KillAt += stride(2) {
			if v.Verb == "reset" {
				b.apply(t, b.declaringPolicy())
			}
			if !b.suffer(t, v) {
				break
			}
			if s, err := b.Status(context.Background()); err != nil || s.Unfinished == nil || s.OK {
				t.Fatalf("%s, place %d: status %+v, %v", v.Verb, v.KillAt, s, err)
			}
			if v.KillAt/stride(2)%2 == 0 {
				if _, err := b.tryApply(b.declaringPolicy()); err != nil {
					t.Fatalf("%s, place %d: apply: %v", v.Verb, v.KillAt, err)
				}
				if diff := cmp.Diff(made, b.made()); diff != "" {
					t.Fatalf("%s, place %d: finished, it has (-want +has)\n%s", v.Verb, v.KillAt, diff)
				}
			}
			if err := b.Reset(context.Background()); err != nil {
				t.Fatalf("%s, place %d: reset: %v", v.Verb, v.KillAt, err)
			}
			if diff := cmp.Diff(before, b.here.Routing()); diff != "" {
				t.Fatalf("%s, place %d: reset left (-before +after)\n%s", v.Verb, v.KillAt, diff)
			}
		}
		if v.KillAt < 10 {
			t.Errorf("%s: only %d places to break off", v.Verb, v.KillAt)
		}
		if err := b.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
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
	if x, err := b.ExplainPID(context.Background(), uint32(bound.PID())); err != nil || x.Workload != "held" || !strings.Contains(strings.Join(x.Promises, "\n"), "vrf mgmt (table 1000, "+b.link.Name+")") {
		t.Errorf("explained: %+v, %v", x, err)
	}
	if again := b.apply(t, text); len(again) != 0 {
		t.Errorf("once more it changes %v", again)
	}
	if changes := b.apply(t, b.mgmtPolicy()); len(changes) != 3 {
		t.Errorf("without workloads it changes %v", changes)
	}
	b.driftsOfVRF(t)
}

// A shell is an ssh session that echoes what is typed.
type shell struct {
	in  io.Writer
	out *bufio.Reader
}

// ssh logs in from there to here.
func (b *bench) ssh(t *testing.T, options []string, to netip.Addr) *shell {
	t.Helper()
	cmd := exec.Command("ssh", append(slices.Clone(options), "root@"+to.String(), `while read -r line; do echo "$line"; done`)...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("ssh: %s", said.String())
		}
	})
	launch(t, b.there, "", cmd)
	s := &shell{in, bufio.NewReader(out)}
	s.lives(t, "logged in to "+to.String())
	return s
}

// lives types a line and reads it back.
func (s *shell) lives(t *testing.T, when string) {
	t.Helper()
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		if _, err := fmt.Fprintln(s.in, when); err != nil {
			got <- answer{"", err}
			return
		}
		text, err := s.out.ReadString('\n')
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		if a.err != nil || a.text != when+"\n" {
			t.Errorf("%s: the session says %q, %v", when, a.text, a.err)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("%s: the session hangs", when)
	}
}

// TestVRFKeepsSSH has real ssh sessions over IPv4 and IPv6 while the link that carries them
// moves into a VRF, and back when nobody confirms; one that began in the VRF lives on too.
func TestVRFKeepsSSH(t *testing.T) {
	testutil.Proves(t, testutil.VRF)
	testutil.Needs(t, "vrf link", "ssh", "sshd", "ssh-keygen", "pidfd")
	b := newBench(t)
	ended := b.guarded(t)
	options := sshd(t, b.here, "0.0.0.0\nListenAddress ::")
	open := []*shell{b.ssh(t, options, b.link.IPv4.Addr()), b.ssh(t, options, b.link.IPv6.Addr())}
	b.untilConfirmed(t, b.mgmtPolicy(), 10*time.Second)
	open = append(open, b.ssh(t, options, b.link.IPv4.Addr()))
	for _, s := range open {
		s.lives(t, "in the VRF")
	}
	if acted := <-ended; !acted {
		t.Error("the guard did not take it back")
	}
	if out := b.here.Output("ip", "vrf"); strings.Contains(out, "mgmt") {
		t.Errorf("left is %s", out)
	}
	for _, s := range open {
		s.lives(t, "taken back")
	}
}
