package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// timed is a policy for a link that nothing shapes.
func (b *bench) timed(link, workloads string) string {
	return fmt.Sprintf("version: 1\nlinks: {%s: %s}\nworkloads:\n%s", b.link.Name, link, workloads)
}

// needsTimes skips a test where no packet can wait for its time of departure.
func needsTimes(t *testing.T) {
	t.Helper()
	testutil.Needs(t, "fq qdisc", "BPF tail calls")
}

// TestLimitByTimes holds real iperf3 streams by departure times: what is received is the
// limit, whatever the rung of the link is and wherever the limit stands.
func TestLimitByTimes(t *testing.T) {
	testutil.Proves(t, testutil.LimitQueued)
	testutil.By(t, string(policy.MethodEDT))
	needsTimes(t)
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	inner, innerGroup := b.makeCgroup(t, "held/inner")
	limit := 100 // Mbit/s
	if testing.Short() {
		limit = 10 // an emulated CPU may not fill more
	}
	before := b.dump(t)
	held := func(more string) string {
		return fmt.Sprintf("  held: {match: [{cgroup: %s}], %segress: {max: %dMbit, method: edt}}\n", group, more, limit)
	}
	const segments, datagrams = segmentWire, 1490.0 / 1448
	udp := []string{"--udp", "--length", "1448", "--bitrate", fmt.Sprintf("%dM", 3*limit)}
	for _, c := range []struct {
		name, link, workloads, dir string
		args                       []string
		onWire                     float64
	}{
		{"one flow", "{}", held(""), dir, nil, segments},
		{"8 flows", "{}", held(""), dir, []string{"--parallel", "8"}, segments},
		{"UDP", "{}", held(""), dir, udp, datagrams},
		{"UDP of priority 7", "{}", held("priority: 7, "), dir, udp, datagrams},
		{"UDP of priority 7, on fq alone", "{scheduler: fq}", held("priority: 7, "), dir, udp, datagrams},
		{"8 flows on ets", "{scheduler: ets}", held(""), dir, []string{"--parallel", "8"}, segments},
		{"of one link", "{}", fmt.Sprintf("  held: {match: [{cgroup: %s}], egress: {links: {%s: {max: %dMbit, method: edt}}}}\n", group, b.link.Name, limit), dir, udp, datagrams},
		{"inside another's", "{}", held("") + fmt.Sprintf("  inner: {match: [{cgroup: %s}], egress: {max: %dMbit, method: edt}}\n", innerGroup, 2*limit), inner, udp, datagrams},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.iperfServer(t, 5201)
			text := b.timed(c.link, c.workloads)
			b.apply(t, text)
			got := 0.0
			for range 4 { // a busy machine's sender may have less, and its receiver count late
				got = received(t, b.here, c.dir, b.far.IPv4.Addr(), 5, append([]string{"--port", "5201"}, c.args...)...)() * c.onWire
				s := status(t, b.Agent)
				t.Logf("%.3f of %d Mbit/s; %s", got, limit, s.Promises[len(s.Promises)-1].Evidence)
				if !s.OK || s.Limits[0].Rung != string(policy.MethodEDT) {
					t.Errorf("status: %+v", s)
				}
				if got <= 1.01*float64(limit) && got >= 0.98*float64(limit) {
					break
				}
			}
			if got > 1.01*float64(limit) || got < 0.98*float64(limit) {
				t.Errorf("%.3f of %d Mbit/s were received", got, limit)
			}
			if d := b.apply(t, text); len(d) != 0 {
				t.Errorf("a second apply changes %v", d)
			}
			if b.room().PaceAttached() {
				t.Error("connections are paced")
			}
		})
	}
	if err := b.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sameAs(t, before, "reset")
}

// TestLimitFallsToTimes: where the kernel can not pace, auto takes departure times, and the
// limit changes under load.
func TestLimitFallsToTimes(t *testing.T) {
	testutil.Proves(t, testutil.LimitQueued)
	testutil.By(t, string(policy.MethodEDT))
	needsTimes(t)
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	text := func(max int) string {
		return b.timed("{}", fmt.Sprintf("  held: {match: [{cgroup: %s}], egress: {max: %dMbit}}\n", group, max))
	}
	b.withoutAtomics(t, text(5))
	start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "90", "--parallel", "4")
	// The device counts the headers of what TCP hands it in one piece once, fq all of them.
	left := b.wireRate("class 0")
	untilBusy(t, left)
	for _, limit := range []int{5, 10, 2} {
		b.lackAtomics(t)
		b.apply(t, text(limit))
		time.Sleep(time.Second)
		const packet = 8 * 64 << 10 / 1e6 / 4 // Mbit/s
		full := false
		for range 4 { // a busy machine may send less, and never more
			rate := left(t, 4*time.Second)
			t.Logf("%.3f of %d Mbit/s left", rate, limit)
			if rate > 1.02*float64(limit)+packet {
				t.Errorf("%.3f Mbit/s left below a limit of %d", rate, limit)
			}
			if full = rate >= 0.98*float64(limit)-packet; full {
				break
			}
		}
		if !full {
			t.Errorf("never what the limit of %d is", limit)
		}
		if s := status(t, b.Agent); !s.OK || s.Limits[0].Rung != string(policy.MethodEDT) || s.Promises[0].Max.String() != fmt.Sprintf("%dMbit", limit) {
			t.Errorf("status: %+v", s)
		}
	}
}

// TestTimesChangeRung has one limit go from pace to departure times and back, under load: at
// no time it is held by neither.
func TestTimesChangeRung(t *testing.T) {
	testutil.Needs(t, "BPF atomics")
	needsTimes(t)
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	text := func(method string) string {
		return b.timed("{}", fmt.Sprintf("  held: {match: [{cgroup: %s}], priority: 3, egress: {max: 20Mbit, method: %s}}\n", group, method))
	}
	b.apply(t, text("pace"))
	b.streams(t, dir, 5201, 4, 120)
	untilBusy(t, b.rate)
	for _, method := range []string{"edt", "pace", "edt"} {
		rate := b.rateOf(t, func() {
			b.apply(t, text(method))
			time.Sleep(4 * time.Second)
		})
		t.Logf("to %s: %.2f Mbit/s", method, rate)
		if rate > 20*1.05 || rate < 20*0.8 {
			t.Errorf("to %s: %.2f Mbit/s left below a limit of 20", method, rate)
		}
		s := status(t, b.Agent)
		if !s.OK || s.Limits[0].Rung != method {
			t.Errorf("to %s: %+v", method, s)
		}
		if paced := b.room().PaceAttached(); paced != (method == "pace") {
			t.Errorf("to %s: paced: %v", method, paced)
		}
		if keeps := strings.Contains(b.here.Output("tc", "qdisc", "show", "dev", b.link.Name), "qdisc fq 7e"); keeps != (method == "edt") {
			t.Errorf("to %s: leaves of fq: %v", method, keeps)
		}
	}
}

var answered = regexp.MustCompile(`time=([0-9.]+) ms`)

// waits is what a few pings took, in ms, in order.
func (b *bench) waits(t *testing.T, args ...string) (took []float64) {
	t.Helper()
	args = append([]string{"-c", "20", "-i", "0.05"}, append(args, b.far.IPv4.Addr().String())...)
	for _, m := range answered.FindAllStringSubmatch(b.here.Output("ping", args...), -1) {
		ms, _ := strconv.ParseFloat(m[1], 64)
		took = append(took, ms)
	}
	if len(took) < 18 {
		t.Fatalf("%d of 20 pings were answered", len(took))
	}
	slices.Sort(took)
	return took
}

// TestTimesKeepPriority: what waits for its time of departure is in nobody's way, neither of a
// higher priority nor of its own.
func TestTimesKeepPriority(t *testing.T) {
	testutil.Needs(t, "ping")
	needsTimes(t)
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	for _, priority := range []int{12, 2} {
		b.apply(t, b.timed("{}", fmt.Sprintf("  held: {match: [{cgroup: %s}], priority: 2, egress: {max: 2Mbit, method: edt}}\n"+
			"  ping: {match: [{protocol: icmp}], priority: %d}\n", group, priority)))
		if priority == 12 {
			start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "60", "--udp", "--length", "1448", "--bitrate", "6M")
			untilBusy(t, b.rate)
			time.Sleep(time.Second)
		}
		backlog := 0
		for _, m := range regexp.MustCompile(`backlog (\d+)b`).FindAllStringSubmatch(b.here.Output("tc", "-s", "qdisc", "show", "dev", b.link.Name), -1) {
			bytes, _ := strconv.Atoi(m[1])
			backlog = max(backlog, bytes)
		}
		if backlog < 10_000 {
			t.Errorf("%d bytes wait", backlog)
		}
		took := b.waits(t)
		t.Logf("priority %d: %v ms, beside %d bytes that wait", priority, took, backlog)
		if median := took[len(took)/2]; median > 20 { // what waits does so for 50 to 100
			t.Errorf("priority %d: the median of pings is %g ms", priority, median)
		}
	}
}

// TestTimesDrift: an fq that somebody else has made smaller is found, and mended; so is a
// departure whose program is gone with the programs.
func TestTimesDrift(t *testing.T) {
	needsTimes(t)
	testutil.Needs(t, "tc")
	b := newBench(t)
	_, group := b.makeCgroup(t, "held")
	text := b.timed("{scheduler: prio}", fmt.Sprintf("  held: {match: [{cgroup: %s}], egress: {max: 10Mbit, method: edt}}\n", group))
	b.apply(t, text)
	b.here.Output("tc", "qdisc", "change", "dev", b.link.Name, "parent", "7e1f:10", "handle", "7e30:", "fq", "flow_limit", "100")
	if s := status(t, b.Agent); s.OK || s.Promises[0].Verdict != plan.Broken || !strings.Contains(s.Promises[0].Evidence, "flow_limit") {
		t.Errorf("with less room: %+v", s.Promises)
	}
	b.apply(t, text)
	if s := status(t, b.Agent); !s.OK {
		t.Errorf("mended: %+v", s)
	}
}

// TestKilledTimes is TestKilledApply of a limit by departure times, on one fq: a place for
// each of many leaves tells no more.
func TestKilledTimes(t *testing.T) {
	needsTimes(t)
	b := newBench(t)
	_, group := b.makeCgroup(t, "held")
	text := b.timed("{scheduler: fq}", fmt.Sprintf("  held: {match: [{cgroup: %s}], egress: {max: 10Mbit, method: edt}}\n", group))
	if places := b.killApply(t, text, stride(longStride)); places < 10 {
		t.Errorf("only %d places to break off", places)
	}
}
