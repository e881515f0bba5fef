package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// limited is a policy that limits a cgroup of the bench's and leaves the queue of
// its link alone.
func (b *bench) limited(group, max string) string {
	return fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none}\nworkloads:\n  held:\n    match: [{cgroup: %s}]\n    egress: {max: %s}\n", b.link.Name, group, max)
}

// sent is what the link has sent, as its device counts.
func (b *bench) sent(t *testing.T) (all struct{ Bytes, Packets uint64 }) {
	t.Helper()
	var link netlink.Link
	var err error
	b.here.Do(func() { link, err = netlink.LinkByName(b.link.Name) })
	if err != nil {
		t.Fatal(err)
	}
	s := link.Attrs().Statistics
	all.Bytes, all.Packets = s.TxBytes, s.TxPackets
	return all
}

// rate is what the link sends for a time, in Mbit/s.
func (b *bench) rate(t *testing.T, over time.Duration) float64 {
	t.Helper()
	return b.rateOf(t, sleeping(over))
}

// rateOf is what the link sends while something is done, in Mbit/s.
func (b *bench) rateOf(t *testing.T, do func()) float64 {
	t.Helper()
	return perSecond(func() float64 { return float64(b.sent(t).Bytes) }, do) * 8 / 1e6
}

// judged is the judgement of the one limit in force.
func (b *bench) judged(t *testing.T) plan.Judgement {
	t.Helper()
	s, err := b.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range s.Promises {
		if j.Promise == plan.PromiseEgress {
			return j
		}
	}
	t.Fatalf("status tells of no limit: %+v", s)
	panic("unreachable")
}

// TestLimit holds real iperf3 streams to a limit: TCP without a drop, UDP with as
// many as it takes.
func TestLimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	const limit = 50
	for name, args := range map[string][]string{
		"one flow":      {},
		"16 flows":      {"--parallel", "16"},
		"v6":            {"--version6"},
		"UDP":           {"--udp", "--bitrate", "100M"},
		"UDP datagrams": {"--udp", "--bitrate", "100M", "--length", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			b.iperfServer(t, 5201)
			b.apply(t, b.limited(group, fmt.Sprintf("%dMbit", limit)))
			defer func() {
				if err := b.Reset(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			to := b.far.IPv4.Addr()
			if name == "v6" {
				to, args = b.far.IPv6.Addr(), nil
			}
			start(t, b.here, dir, nil, "iperf3", append([]string{"--client", to.String(), "--port", "5201", "--time", "60"}, args...)...)
			untilBusy(t, b.rate)
			left := func() map[string]float64 { return map[string]float64{"what leaves": b.rate(t, 2*time.Second)} }
			within(t, left, map[string]float64{"what leaves": limit}, "what leaves")
			j := b.judged(t)
			t.Log(j.Evidence)
			if j.Verdict != plan.Kept || j.Max.String() != "50Mbit" || j.Traffic.Bytes < limit*1e6/8 {
				t.Errorf("status: %+v", j)
			}
			if held := b.heldNow(t); held.Dropped > 0 && !strings.HasPrefix(name, "UDP") {
				t.Errorf("%d packets were dropped", held.Dropped)
			}
		})
	}
}

// heldNow is what became of the packets of the one limited contract.
func (b *bench) heldNow(t *testing.T) plan.Held {
	t.Helper()
	r, err := b.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	held, err := b.held(r)
	if err != nil || len(held) != 1 {
		t.Fatalf("held: %v, %v", held, err)
	}
	for _, h := range held {
		return h
	}
	panic("unreachable")
}

// maxPaces are the most that the kernel lets each iperf3 stream send, in bit/s of
// payload, as ss tells; 0 is no bound.
func (b *bench) maxPaces(t *testing.T) (paces []float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`pacing_rate \d+bps(?:/(\d+)bps)?`).FindAllStringSubmatch(
		b.here.Output("ss", "--tcp", "--info", "--numeric", "--no-header", "--oneline", "state", "established", "dport", "=", ":5201"), -1) {
		pace, _ := strconv.ParseFloat(m[1], 64)
		paces = append(paces, pace)
	}
	return paces
}

// TestLimitIsTakenBack looks at the pace of running connections: below a limit,
// when their own limit goes, and after a reset.
func TestLimitIsTakenBack(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	if ok, err := feature.Has("tcx"); err != nil {
		t.Fatal(err)
	} else if ok {
		testutil.By(t, "tcx")
	} else {
		testutil.By(t, "cls_bpf")
	}
	for name, c := range map[string]struct {
		args []string
		own  float64 // bit/s that the application has set
	}{
		"no pace of its own":  {nil, 0},
		"a lower one":         {[]string{"--fq-rate", "8M"}, 8e6},
		"a higher one":        {[]string{"--fq-rate", "80M"}, 80e6},
		"no pace, four flows": {[]string{"--parallel", "4"}, 0},
	} {
		for how, end := range map[string]func(){
			"reset": func() {
				if err := b.Reset(context.Background()); err != nil {
					t.Error(err)
				}
			},
			"another's limit": func() { b.apply(t, b.limited(b.cgroup+"/other", "64Kbit")) },
			"no limit": func() {
				b.apply(t, strings.ReplaceAll(b.limited(group, ""), "egress: {max: }", "priority: 3"))
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				b.iperfServer(t, 5201)
				b.apply(t, b.limited(group, "40Mbit"))
				start(t, b.here, dir, nil, "iperf3", append([]string{"--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "60"}, c.args...)...)
				b.untilPaced(t, func(pace float64) bool { return pace > 0 && pace <= 40e6 && (c.own == 0 || pace <= c.own) })
				end()
				b.untilPaced(t, func(pace float64) bool { return pace == c.own })
			})
		}
	}
}

// untilPaced waits until the streams are paced as they should.
func (b *bench) untilPaced(t *testing.T, as func(pace float64) bool) {
	t.Helper()
	var paces []float64
	for range 300 {
		paces = b.maxPaces(t)
		right := 0
		for _, p := range paces {
			if as(p) {
				right++
			}
		}
		// The streams, and iperf3's connection to talk about them.
		if len(paces) > 1 && right >= len(paces)-1 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the streams are paced at %v bit/s", paces)
}

// TestLimitReachesOpen: connections from before the limit are paced as well, on
// kernels that can be asked about them then.
func TestLimitReachesOpen(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "late sock_ops")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "60", "--parallel", "2")
	untilBusy(t, b.rate)
	b.apply(t, b.limited(group, "20Mbit"))
	b.untilPaced(t, func(pace float64) bool { return pace > 0 && pace <= 20e6 })
	time.Sleep(500 * time.Millisecond) // what it had sent before is repaid
	dropped := b.heldNow(t).Dropped
	if rate := b.rate(t, 2*time.Second); rate > 20*1.02 {
		t.Errorf("%.2f Mbit/s left below a limit of 20", rate)
	}
	if now := b.heldNow(t).Dropped; now != dropped {
		t.Errorf("%d packets of paced connections were dropped", now-dropped)
	}
}

// TestLimitHoldsAll: what nobody can pace is held by drops: connections from
// before the limit, and what is forwarded.
func TestLimitHoldsAll(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	t.Run("open connection", func(t *testing.T) {
		b := newBench(t)
		dir, group := b.makeCgroup(t, "held")
		b.iperfServer(t, 5201)
		start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "60")
		untilBusy(t, b.rate)
		b.apply(t, b.limited(group, "20Mbit"))
		time.Sleep(time.Second)
		if rate := b.rate(t, 2*time.Second); rate > 20*1.02 || rate < 1 {
			t.Errorf("%.2f Mbit/s left below a limit of 20", rate)
		}
		if late, err := feature.Has("late sock_ops"); err != nil {
			t.Fatal(err)
		} else if held := b.heldNow(t); !late && held.Dropped == 0 {
			t.Error("nothing was dropped")
		}
	})
	t.Run("forwarded", func(t *testing.T) {
		s := newStreet(t)
		text := fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none}\nworkloads:\n  held: {match: [{port: 7000}], egress: {max: 1Mbit}}\n", s.out.Name)
		applyText(t, s.Agent, text)
		var server net.PacketConn
		var err error
		s.server.Do(func() { server, err = net.ListenPacket("udp4", ":7000") })
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		var client net.Conn
		s.client.Do(func() {
			client, err = net.Dial("udp4", netip.AddrPortFrom(s.target.IPv4.Addr(), 7000).String())
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		const size, packets = 1000, 3000
		got, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			for buf := make([]byte, size); ; got++ {
				if _, _, err := server.ReadFrom(buf); err != nil {
					return
				}
			}
		}()
		begin := time.Now()
		last, busy := begin, time.Duration(0) // without what the client was kept from running
		for range packets {
			_, _ = client.Write(make([]byte, size))
			time.Sleep(100 * time.Microsecond)
			now := time.Now()
			busy += min(now.Sub(last), 10*time.Millisecond)
			last = now
		}
		took := last.Sub(begin)
		_ = server.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		<-ended
		// A packet of any size passes, what the bucket has collected before, in 10 ms and two frames, and what
		// is left of the quarter of these 10 ms that was paid at once.
		const wire = size + 42
		const burst = 1 + (0.0125*1e6/8+2*1514)/wire
		most, least := took.Seconds()*1e6/8/wire+burst, busy.Seconds()*1e6/8/wire/2
		t.Logf("%d of %d packets arrived in %v, at most %.1f", got, packets, took, most)
		if float64(got) > most || float64(got) < least {
			t.Errorf("%d of %d packets arrived in %v, want %.1f to %.1f", got, packets, took, least, most)
		}
	})
}
