package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestToward has one workload send to two addresses as much as it can: to one that has a
// limit of its own, by the longer of two prefixes, and to one that has none. Each is held
// to its own and both to the workload's.
func TestToward(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	other, far := testutil.Veth(t, b.here, b.there, testutil.VethOptions{})
	dir, group := b.makeCgroup(t, "held")
	for _, port := range []int{5201, 5202} {
		b.iperfServer(t, port)
	}
	near := b.far.IPv4.Addr()
	// Both addresses are in one prefix of 8 bits.
	wide, err := near.Prefix(8)
	if err != nil || !wide.Contains(far.IPv4.Addr()) {
		t.Fatalf("%v does not hold %v: %v", wide, far.IPv4, err)
	}
	text := func(wideMax string) string {
		return fmt.Sprintf(`version: 1
links:
  %s: {scheduler: none}
  %s: {scheduler: none}
workloads:
  held:
    match: [{cgroup: %s}]
    egress: [{max: 50Mbit}, {to: %s, max: 20Mbit}, {to: [%s, "2001:db8::/32"], max: %s}, {to: "::/0", max: 1Mbit}]
`, b.link.Name, other.Name, group, near, wide, wideMax)
	}
	b.apply(t, text("100Mbit"))
	limits := map[string]float64{"held": 50, "held toward 1": 20, "held toward 2": 100}
	b.iperfClient(t, dir, 5201, 60)
	untilBusy(t, below(b.Agent, "held toward 1"))
	within(t, over(t, b.Agent, 2*time.Second), limits, "held toward 1")
	start(t, b.here, dir, nil, "iperf3", "--client", far.IPv4.Addr().String(), "--port", "5202", "--time", "60")
	untilBusy(t, below(b.Agent, "held toward 2"))
	both := within(t, over(t, b.Agent, 3*time.Second), limits, "held")
	if both["held toward 2"] < 15 || both["held toward 3"] > 0 {
		t.Errorf("the other address got %.2f Mbit/s, IPv6 %.2f", both["held toward 2"], both["held toward 3"])
	}
	b.kept(t, 4)
	before := charged(t, b.Agent)
	if changes := b.apply(t, text("10Mbit")); len(changes) != 1 {
		t.Errorf("changes: %v", changes)
	}
	after := charged(t, b.Agent)
	for of, bytes := range before {
		if again := after[of] < bytes; again != (of.Toward == 2) {
			t.Errorf("%+v was charged for %d bytes before the change and %d after it", of, bytes, after[of])
		}
	}
	limits["held toward 2"] = 10
	untilBusy(t, below(b.Agent, "held toward 2"))
	within(t, over(t, b.Agent, 3*time.Second), limits, "held toward 1", "held toward 2")
	dropsNothing(t, b.Agent)
}

// TestTowardPackets holds small datagrams by the prefix that they go to, those of a child
// cgroup by its parent's: by their receiver's own count.
func TestTowardPackets(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	_, parent := b.makeCgroup(t, "parent")
	child, _ := b.makeCgroup(t, "parent/child")
	const pps = 2000
	b.apply(t, fmt.Sprintf(`version: 1
links: {%[1]s: {scheduler: none}}
workloads:
  parent: {match: [{cgroup: %[2]s}], egress: [{to: %[3]s, pps: %[4]d}, {to: %[5]s, pps: 10}]}
  child: {match: [{cgroup: %[2]s/child}], egress: {max: 100Mbit}}
`, b.link.Name, parent, b.far.IPv4.Addr(), pps, b.far.IPv4.Masked()))
	b.iperfServer(t, 5201)
	arrives(t, pps, func() float64 { return datagrams(t, b.here, child, b.far.IPv4.Addr(), 3*pps, 5201)() })
	all := b.kept(t, 3)
	if j := all[0]; j.To != "to "+b.far.IPv4.Addr().String() && all[1].To != "to "+b.far.IPv4.Addr().String() || j.Link != plan.EveryLink {
		t.Errorf("status: %+v", all)
	}
}
