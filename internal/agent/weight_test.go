package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// After so many seconds all streams have been told of their share, on an emulated CPU too:
// TCP does not pace what it sends at first.
const settled = 3

// Two workloads whose weights are 3 and 1 below one limit.
const weighed = `version: 1
links:
  %[1]s: {scheduler: none}
workloads:
  parent: {match: [{cgroup: %[2]s}], egress: {max: 50Mbit}}
  heavy: {match: [{cgroup: %[2]s/heavy}], egress: {weight: 3}}
  light: {match: [{cgroup: %[2]s/light}], egress: {weight: 1}}
`

// slower is a limit in Mbit/s, and for how long it is looked at: an emulated CPU can not
// fill 50 with one stream.
func slower(limit float64) (float64, time.Duration) {
	if testing.Short() {
		return limit / 5 * 2, 10 * time.Second
	}
	return limit, 5 * time.Second
}

// inLimit is what both workloads send below the limit that they share, for a time, in
// Mbit/s.
func (b *bench) inLimit(t *testing.T, over time.Duration) (heavy, light float64) {
	t.Helper()
	for name, rate := range rates(t, b.Agent, over) {
		switch {
		case strings.HasPrefix(name, "heavy in "):
			heavy = rate
		case strings.HasPrefix(name, "light in "):
			light = rate
		}
	}
	return heavy, light
}

// TestWeights has two workloads fill the limit that they share, by real TCP and UDP. What they
// have is counted at the receiver, for both in the same seconds, and by Weir.
func TestWeights(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const own = "version: 1\nlinks:\n  %[1]s: {scheduler: none, egress: {max: 50Mbit}}\nworkloads:\n" +
		"  heavy: {match: [{cgroup: %[2]s/heavy}], egress: {weight: 3}}\n  light: {match: [{cgroup: %[2]s/light}], egress: {weight: 1}}\n"
	flood := []string{"--udp", "--length", "1400", "--bitrate", "100M"}
	for i, c := range []struct {
		name         string
		policy       string
		heavy, light []string
	}{
		{"a flow each", weighed, nil, nil},
		{"1 against 8 flows", weighed, nil, []string{"--parallel", "8"}},
		{"8 against 1 flows", weighed, []string{"--parallel", "8"}, nil},
		{"TCP against a flood", weighed, nil, flood},
		{"a flood against TCP", weighed, flood, []string{"--parallel", "8"}},
		{"a link's own limit", own, nil, []string{"--parallel", "8"}},
	} {
		if testing.Short() && i != 1 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			b := newBench(t)
			_, parent := b.makeCgroup(t, "parent")
			heavy, _ := b.makeCgroup(t, "parent/heavy")
			light, _ := b.makeCgroup(t, "parent/light")
			limit, over := slower(50)
			b.apply(t, fmt.Sprintf(strings.Replace(c.policy, "50Mbit", fmt.Sprintf("%.0fMbit", limit), 1), b.link.Name, parent))
			arrives := arrivals(t, b.there, 5201, 5202)
			for k, args := range [][]string{c.heavy, c.light} {
				port := 5201 + k
				b.iperfServer(t, port)
				start(t, b.here, []string{heavy, light}[k], nil, "iperf3", append([]string{"--client", b.far.IPv4.Addr().String(),
					"--port", fmt.Sprint(port), "--time", "60"}, args...)...)
			}
			untilBusy(t, func(t *testing.T, over time.Duration) float64 {
				h, l := b.inLimit(t, over)
				return min(h, l)
			})
			time.Sleep(settled * time.Second)
			var got []float64
			both := make(chan struct{})
			go func() { got = arrives(over); close(both) }()
			h, l := b.inLimit(t, over)
			<-both
			for _, c := range []struct {
				who          string
				heavy, light float64
			}{{"as received", got[0], got[1]}, {"as charged", h, l}} {
				t.Logf("%s %.2f and %.2f Mbit/s, %.3f to 1, %.2f together", c.who, c.heavy, c.light, c.heavy/c.light, c.heavy+c.light)
				if math.Abs(c.heavy/c.light/3-1) > 0.05 {
					t.Errorf("%s: %.3f to 1, want 3 to 1", c.who, c.heavy/c.light)
				}
				if sum := c.heavy + c.light; sum < 0.98*limit || sum > 1.02*limit {
					t.Errorf("%s: %.2f Mbit/s below %.0f", c.who, sum, limit)
				}
			}
			if s := status(t, b.Agent); len(s.Differences) > 0 || len(s.Weights) != 2 {
				t.Errorf("status: %+v", s)
			}
		})
	}
}

// TestWeightsChange changes weights while both send: a changed weight is one change, and
// restarts no limit; what one leaves idle the other has. That is eight streams, as one alone
// does not fill 50 Mbit/s beside other work: it loses what its CPU is late by.
func TestWeightsChange(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	_, parent := b.makeCgroup(t, "parent")
	heavy, _ := b.makeCgroup(t, "parent/heavy")
	light, _ := b.makeCgroup(t, "parent/light")
	for _, port := range []int{5201, 5202} {
		b.iperfServer(t, port)
	}
	text := fmt.Sprintf(weighed, b.link.Name, parent)
	b.apply(t, text)
	if again := b.apply(t, text); len(again) > 0 {
		t.Errorf("a second apply changes %v", again)
	}
	cmd, _ := b.iperfClient(t, heavy, 5201, 60) // whose share is three times the limit
	untilBusy(t, below(b.Agent, "heavy in parent"))
	alone := rates(t, b.Agent, 2*time.Second)["heavy in parent"]
	b.iperfClient(t, light, 5202, 60, "--parallel", "8")
	untilBusy(t, below(b.Agent, "light in parent"))
	both := rates(t, b.Agent, 3*time.Second)
	passed := charged(t, b.Agent)
	changed := b.apply(t, strings.Replace(text, "weight: 3", "weight: 1", 1))
	for of, bytes := range charged(t, b.Agent) {
		if of.Member == 0 && bytes < passed[of] {
			t.Errorf("the limit began anew: %d bytes after %d", bytes, passed[of])
		}
	}
	if len(changed) != 1 || !strings.Contains(fmt.Sprint(changed), "weight 3 -> weight 1 in the limit of parent") {
		t.Errorf("another weight changes %v", changed)
	}
	time.Sleep(time.Second)
	even := rates(t, b.Agent, 3*time.Second)
	t.Logf("alone %.2f, beside weight 3 %.2f, beside weight 1 %.2f Mbit/s", alone, both["light in parent"], even["light in parent"])
	for _, c := range []struct{ got, want float64 }{{alone, 50}, {both["light in parent"], 12.5}, {even["light in parent"], 25}} {
		if math.Abs(c.got/c.want-1) > 0.05 {
			t.Errorf("%.2f Mbit/s, want %.2f", c.got, c.want)
		}
	}
	_ = cmd.Process.Kill()
	time.Sleep(500 * time.Millisecond)
	if idle := rates(t, b.Agent, 2*time.Second)["light in parent"]; idle < 49 {
		t.Errorf("%.2f Mbit/s are left of 50 that nobody else wants", idle)
	}
	dropsNothing(t, b.Agent)
}

// TestWeightsOfContainer has two workloads of a container share the limit of what arrives
// from it.
func TestWeightsOfContainer(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	s := newStreet(t)
	heavy, light := filepath.Join(s.Scope.Cgroup, "heavy"), filepath.Join(s.Scope.Cgroup, "light")
	for _, dir := range []string{heavy, light} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	applyText(t, s.Agent, fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none, ingress: {max: 50Mbit}}\nworkloads:\n"+
		"  heavy: {match: [{cgroup: %s}], egress: {weight: 3}}\n  light: {match: [{cgroup: %s}], egress: {weight: 1}}\n", s.in.Name, heavy, light))
	arrives := arrivals(t, s.server, 5201, 5202)
	run := func(dir string, port int, flows string) {
		iperfServer(t, s.server, port)
		start(t, s.client, dir, nil, "iperf3", "--client", s.target.IPv4.Addr().String(), "--port", fmt.Sprint(port), "--time", "60", "--parallel", flows)
	}
	run(heavy, 5201, "1")
	run(light, 5202, "8")
	untilBusy(t, func(_ *testing.T, over time.Duration) float64 { return slices.Min(arrives(over)) })
	time.Sleep(settled * time.Second)
	got := arrives(5 * time.Second)
	h, l := got[0], got[1]
	t.Logf("%.2f and %.2f Mbit/s, %.3f to 1, %.2f together", h, l, h/l, h+l)
	if math.Abs(h/l/3-1) > 0.05 || h+l < 49 || h+l > 51 {
		t.Errorf("%.3f to 1 and %.2f Mbit/s below 50", h/l, h+l)
	}
	dropsNothing(t, s.Agent)
	if s := status(t, s.Agent); len(s.Differences) > 0 || len(s.Weights) != 2 {
		t.Errorf("status: %+v", s)
	}
}
