package agent

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// streams starts an iperf3 client with some streams in a cgroup.
func (b *bench) streams(t *testing.T, cgroup string, port, streams, seconds int) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	cmd := start(t, b.here, cgroup, &out, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", strconv.Itoa(port),
		"--time", strconv.Itoa(seconds), "--parallel", strconv.Itoa(streams), "--json")
	return cmd, &out
}

// leaves is what leaves the link for a time, in Mbit/s on the wire: of each workload
// that has a share, and of the classes.
func (b *bench) leaves(t *testing.T, over time.Duration) map[string]float64 {
	t.Helper()
	numbers := record(t, b.Agent).IDs.Shares[b.link.Name]
	look := func() map[string]uint64 {
		all := map[string]uint64{}
		err := b.inScope(func() error {
			classes, err := tc.Counters(b.link.Index)
			if err != nil {
				return err
			}
			shares, err := tc.Shares(b.link.Index)
			for _, c := range classes {
				all[fmt.Sprintf("class %d", c.Class)] = c.Bytes
			}
			for name, n := range numbers {
				all[name] = shares[n].Bytes
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before, begin := look(), time.Now()
	time.Sleep(over)
	after, took := look(), time.Since(begin).Seconds()
	rates := map[string]float64{}
	for name, bytes := range after {
		rates[name] = float64(bytes-before[name]) * 8 / 1e6 / took
	}
	return rates
}

// sharing are three workloads with unlike numbers of streams that share a line.
type sharing struct {
	*bench
	dirs, paths map[string]string
}

const shared = 50 // Mbit/s

var shareholders = []struct {
	name    string
	streams int
	min     string
	mbit    float64
}{{"small", 6, "20%", 10}, {"middle", 2, "15Mbit", 15}, {"large", 1, "50%", 25}}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	testutil.Needs(t, "htb qdisc")
	s := &sharing{newBench(t), map[string]string{}, map[string]string{}}
	for i, w := range shareholders {
		s.dirs[w.name], s.paths[w.name] = s.makeCgroup(t, w.name)
		s.iperfServer(t, 5201+i)
	}
	return s
}

// policy gives the workloads their shares; of those that are named something else.
func (s *sharing) policy(instead map[string]string) string {
	var b strings.Builder
	for _, w := range shareholders {
		promise, ok := instead[w.name]
		if !ok {
			promise = "egress: {min: " + w.min + "}"
		}
		fmt.Fprintf(&b, "  %s: {match: [{cgroup: %s}], %s}\n", w.name, s.paths[w.name], promise)
	}
	return strings.Replace(s.policyAt(shared, b.String()), "Mbit}", "Mbit, scheduler: htb}", 1)
}

// TestShares has three workloads fill a line: one stream with a share of half of it
// gets that beside eight of others, as iperf3 sees it.
func TestShares(t *testing.T) {
	s := newSharing(t)
	s.apply(t, s.policy(nil))
	rates := s.fight(t)
	for range 3 { // a busy machine may not fill the line
		if rates["small"]+rates["middle"]+rates["large"] < 0.99*shared {
			rates = s.fight(t)
		}
	}
	for _, w := range shareholders {
		if got := rates[w.name]; got < 0.98*w.mbit {
			t.Errorf("%s has %.2f of %.0f Mbit/s", w.name, got, w.mbit)
		}
	}
	if d := s.apply(t, s.policy(nil)); len(d) != 0 {
		t.Errorf("a second apply changes %v", d)
	}
}

// fight has all send for some seconds, during which status judges, and returns what each
// of them got on the wire, in Mbit/s.
func (s *sharing) fight(t *testing.T) map[string]float64 {
	t.Helper()
	rates, ran := map[string]float64{}, map[string]*strings.Builder{}
	var commands []*exec.Cmd
	for i, w := range shareholders {
		var cmd *exec.Cmd
		cmd, ran[w.name] = s.streams(t, s.dirs[w.name], 5201+i, w.streams, 6)
		commands = append(commands, cmd)
	}
	untilBusy(t, func(t *testing.T, over time.Duration) float64 { return s.leaves(t, over)["large"] })
	status, err := s.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, j := range status.Promises {
		if j.Promise == plan.PromiseShare && j.Verdict == plan.Kept && strings.Contains(j.Evidence, "and more waits") {
			kept++
		}
	}
	if !status.OK || kept == 0 {
		t.Errorf("%d shares are kept while packets wait: %+v", kept, status.Promises)
	}
	for i, w := range shareholders {
		wait(t, commands[i], ran[w.name])
		rates[w.name] = delivered(t, ran[w.name]) * segmentWire
		t.Logf("%s: %.2f of %.0f Mbit/s", w.name, rates[w.name], w.mbit)
	}
	return rates
}

// TestSharesComeAndGo gives shares to running streams, and takes them: who keeps its
// own keeps its class and its rate, and what is not promised goes by priority.
func TestSharesComeAndGo(t *testing.T) {
	s := newSharing(t)
	const plain = "priority: 0"
	s.apply(t, s.policy(map[string]string{"small": plain, "middle": plain, "large": plain}))
	for i, w := range shareholders {
		s.streams(t, s.dirs[w.name], 5201+i, w.streams, 120)
	}
	untilBusy(t, func(t *testing.T, over time.Duration) float64 { return s.leaves(t, over)["class 0"] })
	for _, step := range []struct {
		instead map[string]string
		want    map[string]float64
	}{
		{nil, map[string]float64{"small": 10, "middle": 15, "large": 25, "class 0": 0}},
		{map[string]string{"middle": "priority: 15"}, map[string]float64{"small": 10, "large": 25, "class 7": 15}},
		{map[string]string{"middle": "priority: 15", "small": plain}, map[string]float64{"large": 25, "class 7": 25, "class 0": 0}},
		{map[string]string{"small": "priority: 15, egress: {min: 1Mbit}"}, map[string]float64{"small": 10, "middle": 15, "large": 25}},
		{map[string]string{"large": plain, "middle": plain}, map[string]float64{"small": 10}},
	} {
		s.apply(t, s.policy(step.instead))
		time.Sleep(700 * time.Millisecond)
		rates := s.onFull(t, shared, 2*time.Second)
		for name, want := range step.want {
			if got := rates[name]; got < 0.96*want || want == 0 && got > 0.5 {
				t.Errorf("with %v: %s has %.2f of %.0f Mbit/s", step.instead, name, got, want)
			}
		}
	}
	s.apply(t, s.policy(map[string]string{"small": plain, "middle": plain, "large": plain}))
	if out := s.here.Output("tc", "class", "show", "dev", s.link.Name); regexp.MustCompile(`7e1f:[23][0-9a-f]{3}`).MatchString(out) {
		t.Errorf("classes of shares are left:\n%s", out)
	}
}

// TestShareFreesStarving gives a share to a running stream whose class starves: it
// moves at once, though its last packets wait below others', and who made way for them has
// the rest.
func TestShareFreesStarving(t *testing.T) {
	s := newSharing(t)
	none := map[string]string{"small": "priority: 15", "large": "priority: 1", "middle": "priority: 0"}
	s.apply(t, s.policy(none))
	s.streams(t, s.dirs["large"], 5203, 1, 60)
	untilBusy(t, func(t *testing.T, over time.Duration) float64 { return s.leaves(t, over)["class 0"] })
	s.streams(t, s.dirs["small"], 5201, 6, 60)
	untilBusy(t, func(t *testing.T, over time.Duration) float64 { return s.leaves(t, over)["class 7"] })
	if starving := s.leaves(t, time.Second); starving["class 0"] > 1 {
		t.Fatalf("it does not starve: %v", starving)
	}
	none["large"] = "priority: 1, egress: {min: 10Mbit}"
	s.apply(t, s.policy(none))
	time.Sleep(500 * time.Millisecond)
	if free := s.onFull(t, shared, 2*time.Second); free["large"] < 9.8 || free["large"] > 10.5 {
		t.Errorf("a share of 10 Mbit/s gets %.2f, others %v", free["large"], free)
	} else if free["class 7"] < 0.95*(shared-free["large"]) {
		t.Errorf("who made way has %v", free)
	}
}
