package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// receiving is a policy without links, under which the sockets of a cgroup may
// receive only so much.
func receiving(group, max string) string {
	return fmt.Sprintf("version: 1\nworkloads:\n  held: {match: [{cgroup: %s}], ingress: {max: %s}}\n", group, max)
}

// received starts an iperf3 client; at its end it returns what the stream's receiver
// had of it, in Mbit/s of payload. The first second, which has what a full bucket lets
// through, does not count.
func received(t *testing.T, ns *testutil.Namespace, cgroup string, to netip.Addr, seconds int, args ...string) func() float64 {
	t.Helper()
	var out strings.Builder
	cmd := start(t, ns, cgroup, &out, "iperf3",
		append([]string{"--client", to.String(), "--omit", "1", "--time", strconv.Itoa(seconds), "--json"}, args...)...)
	return func() float64 {
		t.Helper()
		wait(t, cmd, &out)
		var said iperf
		if err := json.Unmarshal([]byte(out.String()), &said); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		return said.End.Received.BitsPerSecond / 1e6
	}
}

// Bytes on the wire for each of payload: of full segments with timestamps in IPv4, and
// of datagrams of 1,400.
const (
	segmentWire  = 1514.0 / 1448
	datagramWire = 1442.0 / 1400
)

// collected is the part of a limit that comes on top of it in so many seconds where
// nobody paces TCP: its bucket is 220 ms deep.
func collected(seconds int) float64 { return 0.22 / float64(seconds) }

// TestReceive holds what real iperf3 receivers get to a limit each, all at once and
// whichever end opened the stream, as they count it themselves. No link is declared, and
// the senders are in no cgroup of the scope's.
func TestReceive(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	const limit = 20
	seconds := 5
	if testing.Short() {
		seconds = 2
	}
	type stream struct {
		receiver *testutil.Namespace // there as in a container
		reverse  bool                // the client receives
		args     string
		wire     float64 // bytes for each of payload
		from, to float64 // of the limit; a busy machine's TCP may get less
	}
	streams := map[string]stream{"udp": {b.here, false, "--udp --bitrate 60M --length 1400", datagramWire, 0.99, 1.01}}
	for name, of := range map[string]stream{
		"flows":     {receiver: b.here, args: "--parallel 8"},
		"container": {receiver: b.there},
		"download":  {receiver: b.here, reverse: true},
		"downloads": {receiver: b.here, reverse: true, args: "--parallel 8"},
	} {
		of.wire, of.from, of.to = segmentWire, 0.85, 1.02+collected(seconds)
		streams[name] = of
	}
	text := "version: 1\nworkloads:\n"
	for name := range streams {
		_, group := b.makeCgroup(t, name)
		text += fmt.Sprintf("  %s: {match: [{cgroup: %s}], ingress: {max: %dMbit}}\n", name, group, limit)
	}
	b.apply(t, text)
	port := 5200
	begin := func(name string, of stream) func() float64 {
		port++
		server, client := of.receiver, b.here
		at, to := [2]string{filepath.Join(b.dir, name)}, b.far.IPv4.Addr()
		if of.receiver == b.here {
			client, to = b.there, b.link.IPv4.Addr()
		}
		args := append(strings.Fields(of.args), "--port", strconv.Itoa(port))
		if of.reverse {
			server, client, to = client, server, b.far.IPv4.Addr()
			at[0], at[1] = at[1], at[0]
			args = append(args, "--reverse")
		}
		iperfServerIn(t, server, at[0], port)
		end := received(t, client, at[1], to, seconds, args...)
		return func() float64 {
			rate := end() * of.wire
			t.Logf("%s: %.3f Mbit/s on the wire", name, rate)
			return rate
		}
	}
	ends := map[string]func() float64{}
	for name, of := range streams {
		ends[name] = begin(name, of)
	}
	for name, end := range ends {
		of, rate := streams[name], end()
		for range 3 { // a busy machine may have kept the sender from a CPU
			if rate < limit*of.from {
				rate = begin(name, of)()
			}
		}
		if rate < limit*of.from || rate > limit*of.to {
			t.Errorf("%s: %.3f Mbit/s on the wire below a limit of %d", name, rate, limit)
		}
	}
	s := status(t, b.Agent)
	for _, j := range s.Promises {
		t.Logf("%s: %s", j.Workload, j.Evidence)
	}
	if !s.OK || len(s.Promises) != len(streams) {
		t.Errorf("status: %+v", s)
	}
	iperfServerIn(t, b.here, filepath.Join(b.dir, "udp"), port+1)
	if rate := received(t, b.here, filepath.Join(b.dir, "flows"), netip.MustParseAddr("127.0.0.1"), 1, "--port", strconv.Itoa(port+1))(); rate < 2*limit {
		t.Errorf("%.3f Mbit/s by loopback, which is not limited", rate)
	}
}

// TestReceiveMarks has ends that know of congestion: what comes too early is marked, so
// that they do.
func TestReceiveMarks(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	for _, ns := range []*testutil.Namespace{b.here, b.there} {
		ns.Do(func() {
			if err := os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0); err != nil {
				t.Error(err)
			}
		})
	}
	const limit, seconds = 20, 2
	b.apply(t, receiving(group, "20Mbit"))
	b.iperfServer(t, 5201)
	begin := time.Now()
	rate := received(t, b.here, dir, b.far.IPv4.Addr(), seconds, "--port", "5201", "--reverse")() * segmentWire
	took := time.Since(begin).Seconds()
	h := b.heldNow(t)
	t.Logf("%.2f Mbit/s, %+v", rate, h)
	if rate < limit/2 {
		t.Errorf("%.2f Mbit/s below a limit of %d", rate, limit)
	}
	// By the clock of the test: a receiver that was kept from a CPU finds what came
	// meanwhile at once, and counts it as of less time.
	if passed := float64(h.Passed) * 8 / 1e6; passed > limit*(took+collected(1)) {
		t.Errorf("%.2f Mbit passed in %.2f s below a limit of %d Mbit/s", passed, took, limit)
	}
	if h.Marked == 0 {
		t.Errorf("nothing was marked: %+v", h)
	}
}

// TestReceiveNested has two children of a cgroup download as much as they can, one of
// which uploads, too: the sum is held to the parent's limit, a child to its own, and what
// is sent to the limit of that. The senders of the downloads answer drops, as cubic does: BBR
// hardly does, and of two such flows one can have nearly all that a bucket gives.
func TestReceiveNested(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	_, parent := b.makeCgroup(t, "parent")
	first, _ := b.makeCgroup(t, "parent/first")
	second, _ := b.makeCgroup(t, "parent/second")
	for _, port := range []int{5201, 5202, 5203} {
		b.iperfServer(t, port)
	}
	b.apply(t, fmt.Sprintf(`version: 1
links:
  %[1]s: {scheduler: none}
workloads:
  parent: {match: [{cgroup: %[2]s}], ingress: {max: 40Mbit}}
  first: {match: [{cgroup: %[2]s/first}], egress: {max: 30Mbit}, ingress: {max: 10Mbit}}
  second: {match: [{cgroup: %[2]s/second}], ingress: {max: 1Gbit}}
`, b.link.Name, parent))
	const seconds = 5
	to := b.far.IPv4.Addr()
	// Their buckets are full at first.
	extra := 1 + collected(seconds)/1.02
	within(t, func() map[string]float64 {
		up := received(t, b.here, first, to, seconds, "--port", "5201")
		low := received(t, b.here, first, to, seconds, "--port", "5202", "--reverse", "--congestion", "cubic")
		high := received(t, b.here, second, to, seconds, "--port", "5203", "--reverse", "--congestion", "cubic")
		sent, least, most := up()*segmentWire, low()*segmentWire, high()*segmentWire
		return map[string]float64{"sent": sent, "received by one": least, "received by both of two": least + most}
	}, map[string]float64{"sent": 30, "received by one": 10 * extra, "received by both of two": 40 * extra}, "sent", "received by one", "received by both of two")
	if s := status(t, b.Agent); !s.OK {
		t.Errorf("status: %+v", s)
	}
}

// TestSetReceive gives a running download a limit, beside a policy with and without
// one, changes it, and takes it back.
func TestSetReceive(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	for name, text := range map[string]string{
		"process": "version: 1\nlinks: {%[1]s: {scheduler: none}}\nworkloads: {other: {match: [{cgroup: %[2]s/other}], priority: 3}}\n",
		"cgroup":  "version: 1\nworkloads: {other: {match: [{cgroup: %[2]s/other}], ingress: {max: 64Kbit}}}\n",
	} {
		if testing.Short() && name == "cgroup" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			b.iperfServer(t, 5201)
			text := fmt.Sprintf(text, b.link.Name, b.cgroup)
			b.apply(t, text)
			cmd := start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--reverse", "--time", "60")
			set, give, takeBack := b.giver(t, name, uint32(cmd.Process.Pid), group)
			untilBusy(t, b.downloaded)
			limited := func(limit float64) {
				t.Helper()
				max := policy.Rate(limit * 1e6)
				if err := give(Terms{MaxIngress: &max}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second) // for TCP to notice
				const seconds = 2
				of := set + " ingress"
				within(t, over(t, b.Agent, seconds*time.Second), map[string]float64{of: limit * (1 + collected(seconds)/1.02)}, of)
				s := status(t, b.Agent)
				if terms := "ingress at most " + max.String(); !s.OK || len(s.Sets) != 1 || s.Sets[0].Terms != terms || s.Sets[0].MaxIngress != max {
					t.Errorf("want a set of %s, status is %+v", terms, s)
				}
			}
			free := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				rate := 0.0
				for range 20 { // TCP grows again
					if rate = b.downloaded(t, 500*time.Millisecond); rate > 100 {
						break
					}
				}
				if rate <= 100 {
					t.Errorf("%.2f Mbit/s are received without a limit", rate)
				}
				if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 {
					t.Errorf("status: %+v", s)
				}
				if runs := b.room().ReceiveAttached(); runs != (name == "cgroup") {
					t.Errorf("socket_ingress runs: %v", runs)
				}
				if d := b.apply(t, text); len(d) > 0 {
					t.Errorf("an apply changes %v", d)
				}
			}
			limited(20)
			limited(40)
			none := policy.Rate(0)
			free(give(Terms{MaxIngress: &none}))
			limited(10)
			free(takeBack())
		})
	}
}

// giver is how what is given to a process or to its cgroup is called, is given, and is taken back.
func (b *bench) giver(t *testing.T, kind string, pid uint32, group string) (set string, give func(Terms) error, takeBack func() error) {
	t.Helper()
	ctx := context.Background()
	if kind == "process" {
		return setName(pid), func(terms Terms) error { return b.Set(ctx, pid, terms) }, func() error { return b.Clear(ctx, pid) }
	}
	of := selector(t, group)
	return groupSetName(of), func(terms Terms) error { return b.SetGroup(ctx, of, terms) }, func() error { return b.ClearGroup(ctx, of) }
}

// downloading has a client of the bench's host download at a bitrate, in a cgroup, and returns its giver when it does.
func (b *bench) downloading(t *testing.T, kind, bitrate string) (give func(Terms) error, takeBack func() error) {
	t.Helper()
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	cmd := start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--reverse", "--time", "120", "--bitrate", bitrate)
	_, give, takeBack = b.giver(t, kind, uint32(cmd.Process.Pid), group)
	untilBusy(t, b.downloaded)
	return give, takeBack
}

func selector(t *testing.T, group string) policy.Selector {
	t.Helper()
	cgroup, err := policy.ParseCgroup(group)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Selector{Kind: policy.KindCgroup, Cgroup: cgroup}
}

// downloaded is what iperf3 clients of the bench's host receive for a time, in Mbit/s
// of payload.
func (b *bench) downloaded(t *testing.T, over time.Duration) float64 {
	t.Helper()
	return perSecond(func() float64 { return streamed(t, b.here, remotePort)[5201] }, sleeping(over)) * 8 / 1e6
}

// TestReceiveComesAndGoes reads back what limits of sockets leave on the scope's
// cgroup, without any link.
func TestReceiveComesAndGoes(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	_, group := b.makeCgroup(t, "held")
	b.apply(t, receiving(group, "8Mbit"))
	if again := b.apply(t, receiving(group, "8Mbit")); len(again) > 0 {
		t.Errorf("a second apply changes %v", again)
	}
	s := status(t, b.Agent)
	if !s.OK || len(s.Promises) != 1 || s.Promises[0].Verdict != plan.Kept || s.Promises[0].Max != 8e6 {
		t.Errorf("status: %+v", s)
	}
	if d := b.apply(t, receiving(group, "7Mbit")); len(d) != 1 {
		t.Errorf("another limit is %d changes: %v", len(d), d)
	}
	for _, program := range []string{"socket_ingress", "socket_create"} {
		if err := os.Remove(filepath.Join(b.Scope.Pins, program)); err != nil {
			t.Fatal(err)
		}
		if s := status(t, b.Agent); s.OK || s.Promises[0].Verdict != plan.Broken || !strings.HasPrefix(s.Promises[0].Evidence, "sockets: ") {
			t.Errorf("without %s: %+v", program, s)
		}
		if d := b.apply(t, receiving(group, "7Mbit")); len(d) != 1 {
			t.Errorf("without %s there are %d differences: %v", program, len(d), d)
		}
		if s := status(t, b.Agent); !s.OK || b.receivers(t) != 1 {
			t.Errorf("mended: %+v, and %d programs", s, b.receivers(t))
		}
	}
	b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %s}], priority: 3}}\n", b.link.Name, group))
	if s := status(t, b.Agent); !s.OK || b.receivers(t) != 0 {
		t.Errorf("without a limit: %+v, and %d programs", s, b.receivers(t))
	}
	b.apply(t, receiving(group, "8Mbit"))
	if n := b.receivers(t); n != 1 {
		t.Errorf("%d programs, want one", n)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := b.receivers(t); n != 0 {
		t.Errorf("%d programs are left", n)
	}
}

// receivers counts the programs that see what the sockets of the scope receive.
func (b *bench) receivers(t *testing.T) int {
	t.Helper()
	dir, err := os.Open(b.Scope.Cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	found, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()), Attach: ebpf.AttachCGroupInetIngress})
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Programs)
}
