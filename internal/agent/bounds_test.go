package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// charged is how many bytes each limit has been charged for.
func charged(t *testing.T, a *Agent) map[plan.Owner]uint64 {
	t.Helper()
	held, err := a.held(record(t, a))
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[plan.Owner]uint64{}
	for of, h := range held {
		bytes[of] = h.Passed
	}
	return bytes
}

// rates is what passes below each limit for a time, in Mbit/s, by the workloads'
// names and the links'.
func rates(t *testing.T, a *Agent, over time.Duration) map[string]float64 {
	t.Helper()
	before, begin := charged(t, a), time.Now()
	time.Sleep(over)
	after := charged(t, a)
	took := time.Since(begin).Seconds()
	r := record(t, a)
	names := map[int]string{}
	for name, l := range r.Links {
		names[l.Index] = name
	}
	all := map[string]float64{}
	for of, bytes := range after {
		text := names[of.Link]
		if of.Link == plan.AtSockets {
			text = "ingress"
		}
		switch of.Contract {
		case plan.OwnEgress:
			text += " egress"
		case plan.OwnIngress:
			text += " ingress"
		}
		if of.Toward != 0 {
			text = fmt.Sprintf("toward %d", of.Toward)
		}
		for name, c := range r.IDs.Names {
			if c.ID == of.Contract {
				text = strings.TrimSpace(name + " " + text)
			}
		}
		for name, c := range r.IDs.Names {
			if of.Member != 0 && c.ID == of.Member {
				text = name + " in " + text
			}
		}
		all[text] = float64(bytes-before[of]) * 8 / 1e6 / took
	}
	return all
}

// below is what passes below one limit for a time, in Mbit/s.
func below(a *Agent, limit string) func(t *testing.T, over time.Duration) float64 {
	return func(t *testing.T, over time.Duration) float64 { return rates(t, a, over)[limit] }
}

// within measures rates until those that are busy use four fifths of their limits, four times at most: a
// machine with other work sends less for a while. No limit is exceeded meanwhile.
func within(t *testing.T, measure func() map[string]float64, limits map[string]float64, busy ...string) map[string]float64 {
	t.Helper()
	for range 4 {
		rates, used := measure(), true
		t.Logf("%v Mbit/s", rates)
		for name, limit := range limits {
			if rates[name] > limit*1.02 {
				t.Fatalf("%.2f Mbit/s below the limit of %s, %.0f", rates[name], name, limit)
			}
			used = used && (rates[name] >= limit*0.8 || !slices.Contains(busy, name))
		}
		if used {
			return rates
		}
	}
	t.Fatalf("%v use less than four fifths of %v", busy, limits)
	return nil
}

// over measures all rates for a time.
func over(t *testing.T, a *Agent, d time.Duration) func() map[string]float64 {
	return func() map[string]float64 { t.Helper(); return rates(t, a, d) }
}

// TestNestedLimits has two children of a cgroup send as much as they can: the sum is
// held to the parent's limit and each to its own.
func TestNestedLimits(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	_, parent := b.makeCgroup(t, "parent")
	first, _ := b.makeCgroup(t, "parent/first")
	second, _ := b.makeCgroup(t, "parent/second")
	for _, port := range []int{5201, 5202} {
		b.iperfServer(t, port)
	}
	b.apply(t, fmt.Sprintf(`version: 1
links:
  %[1]s: {scheduler: none}
workloads:
  parent: {match: [{cgroup: %[2]s}], egress: {max: 50Mbit}}
  first: {match: [{cgroup: %[2]s/first}], egress: {max: 20Mbit}}
  second: {match: [{cgroup: %[2]s/second}], egress: {max: 45Mbit}}
`, b.link.Name, parent))
	limits := map[string]float64{"parent": 50, "first": 20, "second": 45}
	b.iperfClient(t, first, 5201, 60)
	untilBusy(t, below(b.Agent, "first"))
	within(t, over(t, b.Agent, 2*time.Second), limits, "first")
	b.iperfClient(t, second, 5202, 60)
	untilBusy(t, below(b.Agent, "second"))
	both := within(t, over(t, b.Agent, 3*time.Second), limits, "parent")
	if sum := both["first"] + both["second"]; sum > 50*1.02 {
		t.Errorf("the children send %.2f Mbit/s", sum)
	}
	if s := status(t, b.Agent); !s.OK {
		t.Errorf("status: %+v", s)
	}
	dropsNothing(t, b.Agent)
}

// dropsNothing checks that no limit has dropped a packet.
func dropsNothing(t *testing.T, a *Agent) {
	t.Helper()
	held, err := a.held(record(t, a))
	if err != nil {
		t.Fatal(err)
	}
	for of, h := range held {
		if h.Dropped > 0 {
			t.Errorf("%+v dropped %d packets", of, h.Dropped)
		}
	}
}

// TestLimitPerLink has one workload send on two links, each of which has a limit for
// it, below one for both.
func TestLimitPerLink(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	other, far := testutil.Veth(t, b.here, b.there, testutil.VethOptions{})
	dir, group := b.makeCgroup(t, "held")
	for _, port := range []int{5201, 5202} {
		b.iperfServer(t, port)
	}
	b.apply(t, fmt.Sprintf(`version: 1
links:
  %[1]s: {scheduler: none}
  %[2]s: {scheduler: none, egress: {max: 35Mbit}}
workloads:
  held: {match: [{cgroup: %[3]s}], egress: {max: 50Mbit, links: {%[1]s: {max: 20Mbit}, %[2]s: {max: 40Mbit}}}}
`, b.link.Name, other.Name, group))
	first, second := "held "+b.link.Name, "held "+other.Name
	limits := map[string]float64{first: 20, second: 35, other.Name + " egress": 35, "held": 50}
	b.iperfClient(t, dir, 5201, 60)
	untilBusy(t, below(b.Agent, first))
	within(t, over(t, b.Agent, 2*time.Second), limits, first)
	start(t, b.here, dir, nil, "iperf3", "--client", far.IPv4.Addr().String(), "--port", "5202", "--time", "60")
	untilBusy(t, below(b.Agent, second))
	within(t, over(t, b.Agent, 3*time.Second), limits, "held")
	if s := status(t, b.Agent); !s.OK {
		t.Errorf("status: %+v", s)
	}
}

// TestContainerIsPaced limits what arrives from a container: its TCP is paced at its
// source, nothing is dropped, whether it talks to the host or through it.
func TestContainerIsPaced(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	s := newStreet(t)
	text := fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none, ingress: {max: 50Mbit}}\n", s.in.Name)
	applyText(t, s.Agent, text)
	ingress := s.in.Name + " ingress"
	limits := map[string]float64{ingress: 50}
	for name, to := range map[string]struct {
		*testutil.Namespace
		testutil.End
	}{"to the host": {s.router, s.in}, "through it": {s.server, s.target}} {
		for _, flows := range []string{"1", "8"} {
			t.Run(name+", flows "+flows, func(t *testing.T) {
				iperfServer(t, to.Namespace, 5201)
				start(t, s.client, s.Scope.Cgroup, nil, "iperf3", "--client", to.IPv4.Addr().String(), "--port", "5201", "--time", "60", "--parallel", flows)
				untilBusy(t, below(s.Agent, ingress))
				within(t, over(t, s.Agent, 2*time.Second), limits, ingress)
				dropsNothing(t, s.Agent)
			})
		}
	}
	if s := status(t, s.Agent); !s.OK {
		t.Errorf("status: %+v", s)
	}
}

// TestIngressComesAndGoes reads back what a link's own limits leave on its hooks.
func TestIngressComesAndGoes(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	text := func(own string) string {
		return fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none%s}\n", b.link.Name, own)
	}
	b.apply(t, text(", ingress: {max: 8Mbit}, egress: {max: 9Mbit}"))
	if again := b.apply(t, text(", ingress: {max: 8Mbit}, egress: {max: 9Mbit}")); len(again) > 0 {
		t.Errorf("a second apply changes %v", again)
	}
	s := status(t, b.Agent)
	found := map[policy.Rate]plan.Verdict{}
	for _, j := range s.Promises {
		found[j.Max] = j.Verdict
	}
	if !s.OK || found[8e6] != plan.Kept || found[9e6] != plan.Kept {
		t.Errorf("status: %+v", s)
	}
	if d := b.apply(t, text(", ingress: {max: 7Mbit}")); len(d) != 1 {
		t.Errorf("other limits are %d changes: %v", len(d), d)
	}
	b.takeIngress(t)
	if s := status(t, b.Agent); s.OK || !strings.Contains(fmt.Sprint(s.Differences), "ingress") {
		t.Errorf("without its program: %+v", s.Differences)
	}
	b.apply(t, text(", ingress: {max: 7Mbit}"))
	if s := status(t, b.Agent); !s.OK {
		t.Errorf("mended: %+v", s)
	}
	b.apply(t, text(""))
	if s := status(t, b.Agent); !s.OK || b.programsAt(t, "ingress") != 0 {
		t.Errorf("without a limit: %+v, and %d programs", s, b.programsAt(t, "ingress"))
	}
	b.apply(t, text(", ingress: {max: 7Mbit}"))
	if n := b.programsAt(t, "ingress"); n != 1 {
		t.Errorf("%d programs at the ingress, want one", n)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := b.programsAt(t, "ingress") + b.programsAt(t, "egress"); n != 0 {
		t.Errorf("%d programs are left", n)
	}
}

// programsAt counts the programs at a hook of the bench's link.
func (b *bench) programsAt(t *testing.T, hook string) int {
	t.Helper()
	if ok, err := feature.Has("tcx"); err != nil {
		t.Fatal(err)
	} else if !ok {
		// It fails where there is no clsact.
		out := b.here.Output("sh", "-c", "tc filter show dev "+b.link.Name+" "+hook+" 2>&1 || true")
		return strings.Count(out, "direct-action")
	}
	attach := map[string]ebpf.AttachType{"ingress": ebpf.AttachTCXIngress, "egress": ebpf.AttachTCXEgress}[hook]
	var found *link.QueryResult
	var err error
	b.here.Do(func() { found, err = link.QueryPrograms(link.QueryOptions{Target: b.link.Index, Attach: attach}) })
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Programs)
}

// takeIngress takes link_ingress off the bench's link, as somebody else might.
func (b *bench) takeIngress(t *testing.T) {
	t.Helper()
	if ok, err := feature.Has("tcx"); err != nil {
		t.Fatal(err)
	} else if !ok {
		b.here.Output("tc", "filter", "del", "dev", b.link.Name, "ingress")
		return
	}
	if err := os.Remove(filepath.Join(b.Scope.Pins, "ingress", strconv.Itoa(b.link.Index))); err != nil {
		t.Fatal(err)
	}
}

func record(t *testing.T, a *Agent) *state.Record {
	t.Helper()
	r, err := a.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func status(t *testing.T, a *Agent) *Status {
	t.Helper()
	s, err := a.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
