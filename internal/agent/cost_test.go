package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/testutil"
)

// costs reports what an interval cost.
func (b *bench) costs(t *testing.T, interval time.Duration) *cost.Report {
	t.Helper()
	testutil.Needs(t, "BTF")
	m, err := b.MeasureCost(997, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := m.Next(context.Background(), interval)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func owner(r *cost.Report, id cost.PartyID) cost.Party {
	i := slices.IndexFunc(r.Owners, func(p cost.Party) bool { return p.PartyID == id })
	if i < 0 {
		return cost.Party{}
	}
	return r.Owners[i]
}

// Packets belong to a workload of the policy, by whatever selector; without one to a cgroup.
func TestCostsOfWorkloads(t *testing.T) {
	b := newBench(t)
	b.iperfServer(t, 5201)
	start(t, b.here, b.dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "60")
	before := owner(b.costs(t, time.Second), cost.PartyID{Kind: cost.PartyCgroup, Name: b.cgroup})
	if before.RX == 0 || before.Packets == 0 || before.Send == 0 {
		t.Errorf("without a policy: %+v", before)
	}

	b.apply(t, b.policyAt(2000, "  copies:\n    match: [{port: 5201}]\n    priority: 8\n"))
	r := b.costs(t, time.Second)
	after := owner(r, cost.PartyID{Kind: cost.PartyWorkload, Name: "copies"})
	if after.RX == 0 || after.Packets == 0 {
		t.Errorf("with a policy: %+v of %+v", after, r.Owners)
	}
	b.apply(t, b.policyAt(2000, "  group:\n    match: [{cgroup: "+b.cgroup+"}]\n    priority: 8\n"))
	r = b.costs(t, time.Second)
	group := owner(r, cost.PartyID{Kind: cost.PartyWorkload, Name: "group"})
	if group.RX == 0 || group.Send == 0 {
		t.Errorf("by its cgroup: %+v of %+v", group, r.Owners)
	}
	if !slices.ContainsFunc(r.Victims, func(p cost.Party) bool { return p.Name == "iperf3" && p.Workload == "group" }) {
		t.Errorf("the sender is no victim of workload group: %+v", r.Victims)
	}
}

// What a loop finds that it lost on a CPU is what the meter counted there.
func TestProbe(t *testing.T) {
	b := newBench(t)
	testutil.Needs(t, "BTF")
	m, err := b.MeasureCost(0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := m.Probe(context.Background(), 0, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", p)
	if p.Effective <= 0 || p.Effective > p.Apparent+5 || p.Metered > 100 || p.Seconds < 0.5 {
		t.Errorf("%+v", p)
	}
	if m.meter.NotSampling() == nil {
		t.Error("it samples, unasked")
	}
}

// Where no meter can run there is what the kernel counts, and what is not known is said.
func TestCostsWithoutMeter(t *testing.T) {
	b := newBench(t)
	b.Scope.Cgroup = b.dir + "/absent"
	m, err := b.MeasureCost(997, false)
	b.Scope.Cgroup = b.dir
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := m.Next(context.Background(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rung != cost.ByCounters || len(r.CPUs) == 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "/absent") {
		t.Errorf("%+v", r)
	}
	if _, err := m.Probe(context.Background(), 0, time.Second); !errors.Is(err, ErrNoMeter) {
		t.Errorf("a probe: %v", err)
	}
	if _, err := m.During(func() error { return nil }); !errors.Is(err, ErrNoMeter) {
		t.Errorf("a comparison: %v", err)
	}
}
