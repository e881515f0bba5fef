package agent

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/testutil"
)

// TestDockerVeth limits what arrives from a container of Docker's by its veth. What
// the host receives is held, and nothing is dropped for that.
func TestDockerVeth(t *testing.T) {
	d := newDockyard(t)
	c := d.run(t, "sender")
	d.unlimited(t, c, d.here)
	d.apply(t, fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none, ingress: {max: 50Mbit}}\n", c.veth))
	d.within50(t, func() float64 { return d.received(t, c, d.here, 4) })
	d.paced(t, 0)
}

// TestDockerCgroup limits containers of Docker's together by a pattern of their
// cgroups, on the link by which their bridge reaches the far end: one that is there
// when the policy comes, and one that is born later.
func TestDockerCgroup(t *testing.T) {
	d := newDockyard(t)
	first := d.run(t, "first")
	d.unlimited(t, first, d.there)
	d.apply(t, d.limited())
	d.send(t, first, d.there)
	time.Sleep(time.Second)
	d.within50(t, func() float64 { return d.arrives(t, 2*time.Second) })
	d.send(t, d.run(t, "second"), d.there)
	time.Sleep(time.Second)
	d.within50(t, func() float64 { return d.arrives(t, 2*time.Second) })
	d.paced(t, 0)
}

// TestDockerOpen limits a container that is sending already. What it had sent before
// may be dropped, nothing later.
func TestDockerOpen(t *testing.T) {
	testutil.Needs(t, "late sock_ops")
	d := newDockyard(t)
	d.send(t, d.run(t, "sender"), d.there)
	time.Sleep(500 * time.Millisecond)
	d.apply(t, d.limited())
	time.Sleep(1500 * time.Millisecond)
	dropped := d.dropped(t)
	d.within50(t, func() float64 { return d.arrives(t, 3*time.Second) })
	d.paced(t, dropped)
}

// limited is a policy for all containers, on the bench's link.
func (d *dockyard) limited() string {
	return fmt.Sprintf(`version: 1
links:
  %s: {scheduler: none}
workloads:
  containers: {match: [{cgroup: %s/docker/*}], egress: {max: 50Mbit}}
`, d.link.Name, d.cgroup)
}

// unlimited checks that without a limit a container sends well above those to come.
func (d *dockyard) unlimited(t *testing.T, c container, to *testutil.Namespace) {
	t.Helper()
	if free := d.received(t, c, to, 1); free < 100 {
		t.Fatalf("without a limit %.1f Mbit/s are received, which shows nothing", free)
	}
}

func (d *dockyard) within50(t *testing.T, rate func() float64) {
	t.Helper()
	within(t, func() map[string]float64 { return map[string]float64{"containers": rate()} }, map[string]float64{"containers": 50}, "containers")
}

// send has a container send to a namespace until the end of the test.
func (d *dockyard) send(t *testing.T, c container, to *testutil.Namespace) {
	t.Helper()
	start(t, to, "", nil, "iperf3", "--client", c.ip, "--reverse", "--time", "60")
}

// received has a container send to a namespace for some seconds and returns the rate
// that arrived, in Mbit/s of payload, by the receiver's own account.
func (d *dockyard) received(t *testing.T, c container, to *testutil.Namespace, seconds int) float64 {
	t.Helper()
	var out strings.Builder
	cmd := start(t, to, "", &out, "iperf3", "--client", c.ip, "--reverse", "--time", strconv.Itoa(seconds), "--json")
	wait(t, cmd, &out)
	return delivered(t, &out)
}

// arrives is the rate of all that the far end's device receives for a time, in
// Mbit/s, as that device counts: the headers of what one GSO packet carries once.
func (d *dockyard) arrives(t *testing.T, over time.Duration) float64 {
	t.Helper()
	bytes := func() float64 {
		var l netlink.Link
		var err error
		d.there.Do(func() { l, err = netlink.LinkByIndex(d.far.Index) })
		if err != nil {
			t.Fatal(err)
		}
		return float64(l.Attrs().Statistics.RxBytes)
	}
	return perSecond(bytes, sleeping(over)) * 8 / 1e6
}

// dropped is how many packets the limits have dropped so far.
func (d *dockyard) dropped(t *testing.T) (packets uint64) {
	t.Helper()
	held, err := d.held(record(t, d.Agent))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range held {
		packets += h.Dropped
	}
	return packets
}

// paced checks that nothing was dropped since then: the containers' TCP is held at its
// source.
func (d *dockyard) paced(t *testing.T, since uint64) {
	t.Helper()
	if n := d.dropped(t) - since; n > 0 {
		t.Errorf("%d packets were dropped", n)
	}
	if s := status(t, d.Agent); !s.OK {
		t.Errorf("status: %+v", s)
	}
}
