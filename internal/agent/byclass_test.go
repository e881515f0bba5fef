package agent

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// byClass is a policy with a limit of what is received, whose answers wait in a class of ours.
func (b *bench) byClass(group string, mbit int, more string) string {
	return fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none}\nworkloads:\n  held: {match: [{cgroup: %s}], ingress: {max: %dMbit, method: htb}%s}\n",
		b.link.Name, group, mbit, more)
}

// counted is what stood in the class of a workload so far, in bytes, which acknowledgements were sent for.
func (b *bench) counted(t *testing.T, n int) (bytes uint64) {
	t.Helper()
	b.here.Do(func() {
		at, _, err := tc.FindWaiting()
		if err != nil {
			t.Error(err)
			return
		}
		shares, err := tc.Shares(at)
		if err != nil || len(shares) <= n {
			t.Errorf("%+v, %v", shares, err)
			return
		}
		if shares[n].Drops != 0 {
			t.Errorf("%d acknowledgements were dropped", shares[n].Drops)
		}
		bytes = shares[n].Bytes
	})
	return bytes
}

// arrived is what a link of the bench has received so far, in bytes, as the device counts them.
func (b *bench) arrived(t *testing.T) (bytes uint64) {
	t.Helper()
	b.here.Do(func() {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			t.Error(err)
			return
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), b.link.Name+":"); ok {
				if _, err := fmt.Sscan(rest, &bytes); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return bytes
}

// cutWire is bytes on the wire for each of payload, with so many of headers, where a window has room for two segments, less what
// TCP rounds it up to: one is whole and one is not.
func cutWire(headers float64) float64 { return (2048 + 2*headers) / 2048 }

// TestReceiveByClass downloads below a limit for which acknowledgements wait in a class of ours, over IPv4 and IPv6, from next
// door and from further away: the limit is what comes, nothing is sent again, the class has counted what came, and the wire sees
// packets as they always were.
func TestReceiveByClass(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc")
	for _, c := range []struct {
		ms, jitter, mbit int
		flows            string
		six              bool
		more             string
	}{
		{0, 0, 1, "1", false, ""}, {0, 0, 10, "1", false, ""}, {0, 0, 10, "8", true, ""}, {0, 0, 10, "32", false, ", egress: {max: 100Mbit}"},
		{0, 0, 100, "1", false, ""}, {0, 0, 100, "32", false, ""}, {1, 0, 20, "8", false, ""}, {5, 2, 20, "1", false, ""}, {20, 0, 10, "8", false, ""},
		{100, 0, 20, "8", false, ""},
	} {
		if testing.Short() && (c.ms > 20 || c.mbit > 20) {
			continue
		}
		t.Run(fmt.Sprintf("%d ms, give or take %d, %s flows below %d Mbit/s, IPv6 %v%s", c.ms, c.jitter, c.flows, c.mbit, c.six, c.more), func(t *testing.T) {
			t.Parallel() // it mostly waits
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			if c.ms != 0 {
				testutil.Needs(t, "netem qdisc")
				b.farAway(t, c.ms, false)
			}
			if c.jitter != 0 { // held to a rate netem keeps their order
				b.there.Output("tc", "qdisc", "replace", "dev", b.far.Name, "root", "netem", "delay", fmt.Sprintf("%dms", c.ms), fmt.Sprintf("%dms", c.jitter), "rate", "1gbit", "limit", "20000")
			}
			b.iperfServer(t, 5201)
			text := b.byClass(group, c.mbit, c.more)
			b.apply(t, text)
			to, limit, headers := b.far.IPv4.Addr(), float64(c.mbit), 66.0
			if c.six {
				to, headers = b.far.IPv6.Addr(), 86
			}
			rate, again := 0.0, 0
			good := func(rate float64, again int) bool {
				return rate <= 1.01*limit && rate/segmentWire*cutWire(headers) >= 0.99*limit && again <= 2
			}
			for range 4 { // a busy machine's sender may have less
				came, stood := b.arrived(t), b.counted(t, 0)
				rate, again = b.get(t, dir, to, 5, c.flows)
				came, stood = b.arrived(t)-came, b.counted(t, 0)-stood
				s := status(t, b.Agent)
				t.Logf("%.3f of %g Mbit/s, %d segments sent again; of %d bytes %d stood in the class", rate, limit, again, came, stood)
				byHTB := func(l LimitStatus) bool {
					return l.Promise == plan.PromiseIngress && l.Rung == string(policy.MethodHTB)
				}
				if !s.OK || !slices.ContainsFunc(s.Limits, byHTB) {
					t.Errorf("status: %+v", s)
				}
				if good(rate, again) {
					break
				}
			}
			if !good(rate, again) {
				t.Errorf("%.3f of %g Mbit/s were received, and %d segments sent again", rate, limit, again)
			}
			start(t, b.here, dir, nil, "iperf3", "--client", to.String(), "--port", "5201", "--reverse", "--time", "60")
			untilBusy(t, b.downloaded)
			if sizes := b.pieces(t, 3*time.Second); sizes[len(sizes)-1] >= plan.WaitingLength {
				t.Errorf("packets of %d bytes left, though nothing is sent but acknowledgements", sizes[len(sizes)-1])
			}
			if d := b.apply(t, text); len(d) != 0 {
				t.Errorf("applied again: %v", d)
			}
		})
	}
}

// TestClassLetsRequestsPass is TestAnswersWaitForTheirOwn where acknowledgements wait in one line: requests and answers do not.
func TestClassLetsRequestsPass(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc")
	const limit = 100 // Mbit/s
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.apply(t, b.byClass(group, limit, ""))
	b.asksBeside32(t, dir, limit, testutil.VirtualClock()) // a machine with others beside it tells of those
}

// beginByClass has connections of a peer begin again and again below a limit in Mbit/s whose acknowledgements wait in a class, and
// looks at each time while they go on, 300 ms later.
func beginByClass(t *testing.T, limit, flows, times int, look func(b *bench, receiver, bulk *traffic.Worker) error) {
	t.Helper()
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc")
	ctx := context.Background()
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.apply(t, b.byClass(group, limit, ""))
	receiver, bulk := worker(t, b.here, dir), worker(t, b.there, "")
	to := traffic.Where{To: netip.AddrPortFrom(b.link.IPv4.Addr(), 5301)}
	err := receiver.Receive(ctx, to.To)
	for n := 0; n < times && err == nil; n++ {
		if err = bulk.Send(ctx, to, flows); err == nil {
			time.Sleep(300 * time.Millisecond)
			err = look(b, receiver, bulk)
		}
		if err == nil {
			_, err = bulk.Stop(ctx)
			time.Sleep(700 * time.Millisecond) // they begin anew
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestClassBegins: one connection begins, and nothing of it is dropped: what it sends while no vote tells of it is found in the
// bucket.
func TestClassBegins(t *testing.T) {
	beginByClass(t, 100, 1, 12, func(b *bench, _, bulk *traffic.Worker) error {
		again, h := resent(t, bulk), b.heldNow(t)
		t.Logf("%d packets dropped so far, sent again %+v", h.Dropped, again)
		if h.Dropped != 0 {
			return fmt.Errorf("%d packets were dropped", h.Dropped)
		}
		return nil
	})
}

// TestClassOfMany: 32 connections begin, acknowledged by all CPUs at once, and the limit goes on to be what comes. Where two took
// the same of what nobody stands for, all that came later had a sixth of it.
func TestClassOfMany(t *testing.T) {
	const limit = 1000 // Mbit/s
	beginByClass(t, limit, 32, 8, func(_ *bench, receiver, _ *traffic.Worker) error {
		before, err := receiver.Received(t.Context())
		if err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		after, err := receiver.Received(t.Context())
		if err != nil {
			return err
		}
		mbit := float64(after.Bytes-before.Bytes) * 8e3 / float64(after.At-before.At)
		t.Logf("%.0f Mbit/s", mbit)
		if mbit < limit/2 { // a busy machine may have less than all
			return fmt.Errorf("%.0f of %d Mbit/s", mbit, limit)
		}
		return nil
	})
}

// TestClassCountsAll: datagrams, and the acknowledgements that a connection gets which sends, are part of the limit, though they
// are answered by nothing that waits: what else comes is so much less, and nothing of it is sent again.
func TestClassCountsAll(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	b.iperfServer(t, 5202)
	b.iperfServer(t, 5203)
	const limit, datagrams = 10, 1 // less than the part of one of nine
	b.apply(t, b.byClass(group, limit, ", egress: {max: 30Mbit}"))
	to := b.far.IPv4.Addr()
	for range 4 { // a busy machine's sender may have less
		up := received(t, b.here, dir, to, 7, "--port", "5203")
		udp := received(t, b.here, dir, to, 7, "--port", "5202", "--reverse", "--udp", "--bitrate", fmt.Sprintf("%dM", datagrams), "--length", "1400")
		tcp, again := b.get(t, dir, to, 5, "8")
		sent, came := up()*segmentWire, udp()*datagramWire
		evidence := b.judgedIngress(t)
		t.Logf("%.2f Mbit/s sent; received %.3f by TCP, %d segments sent again, %.3f of datagrams; %s", sent, tcp, again, came, evidence)
		acknowledged := sent / segmentWire * 66 / (2 * 1448) // where each second segment is
		if most := limit - came; tcp <= 1.01*most && tcp/segmentWire*cutWire(66) >= 0.98*(most-acknowledged) && again <= 5 && came >= 0.99*datagrams*datagramWire {
			return
		}
	}
	t.Errorf("never what is left of %d Mbit/s", limit)
}

// judgedIngress is the evidence of the limit of what is received.
func (b *bench) judgedIngress(t *testing.T) string {
	t.Helper()
	s := status(t, b.Agent)
	for _, j := range s.Promises {
		if j.Promise == plan.PromiseIngress {
			if j.Verdict != plan.Kept {
				t.Errorf("%+v", j)
			}
			return j.Evidence
		}
	}
	return ""
}

// TestWaitingComesAndGoes: what others do to the devices is told and mended, and with the last such limit they go.
func TestWaitingComesAndGoes(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc", "ip")
	b := newBench(t)
	_, group := b.makeCgroup(t, "held")
	text := b.byClass(group, 10, "")
	b.apply(t, text)
	for _, args := range []string{
		"link del " + tc.WaitingDevice, "link set " + tc.BackDevice + " down", "link set " + tc.WaitingDevice + " down",
	} {
		b.here.Output("ip", strings.Fields(args)...)
		if s := status(t, b.Agent); s.OK {
			t.Errorf("%s: %+v", args, s)
		}
		if d := b.apply(t, text); len(d) == 0 {
			t.Errorf("%s: nothing to mend", args)
		}
		if s := status(t, b.Agent); !s.OK {
			t.Errorf("%s, and applied: %+v", args, s)
		}
	}
	there := func() bool {
		at, back := 0, 0
		b.here.Do(func() {
			var err error
			if at, back, err = tc.FindWaiting(); err != nil {
				t.Error(err)
			}
		})
		return at != 0 || back != 0
	}
	// With one limit of two its class goes, and the other's stays.
	two := text + strings.Replace(text[strings.Index(text, "  held:"):], "  held: {match: [{cgroup: "+group, "  other: {match: [{cgroup: "+group+"/other", 1)
	classes := func() string {
		return b.here.Output("tc", "class", "show", "dev", tc.WaitingDevice)
	}
	b.apply(t, two)
	if shown := classes(); !strings.Contains(shown, "7e1f:2000 ") || !strings.Contains(shown, "7e1f:2010 ") {
		t.Errorf("of two limits:\n%s", shown)
	}
	b.apply(t, text)
	if shown := classes(); !strings.Contains(shown, "7e1f:2000 ") || strings.Contains(shown, "7e1f:2010 ") {
		t.Errorf("of one limit:\n%s", shown)
	}
	if s := status(t, b.Agent); !s.OK {
		t.Errorf("of one limit: %+v", s)
	}
	b.apply(t, strings.Replace(text, "htb", "pace", 1))
	if s := status(t, b.Agent); !s.OK || there() {
		t.Errorf("by pace: %+v, devices %v", s, there())
	}
	b.apply(t, text)
	if !there() {
		t.Error("there are no devices")
	}
	if err := b.Reset(context.Background()); err != nil || there() {
		t.Errorf("after reset: %v, devices %v", err, there())
	}
}

// TestWaitingForeign: another's device of the name is an error, and nothing is changed.
func TestWaitingForeign(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc", "ip")
	b := newBench(t)
	_, group := b.makeCgroup(t, "held")
	b.here.Output("ip", "link", "add", tc.WaitingDevice, "type", "veth", "peer", "name", "other")
	if _, err := b.tryApply(b.byClass(group, 10, "")); err == nil || !strings.Contains(err.Error(), "the device "+tc.WaitingDevice+" is not Weir's") {
		t.Errorf("%v", err)
	}
	if s := status(t, b.Agent); s.Policy != "" || s.Unfinished != nil {
		t.Errorf("%+v", s)
	}
	b.here.Output("ip", "link", "show", tc.WaitingDevice)
}
