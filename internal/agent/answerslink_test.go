package agent

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestAnswersByLink downloads by two links, one of which is held to a rate, so that nothing waits on it for its time: what is
// answered by the other one does, who answers by the former is held by its window from its beginning on, and the limit of
// both holds. A connection whose answers go the other way all at once is held by what suits them.
func TestAnswersByLink(t *testing.T) {
	testutil.Needs(t, "netem qdisc")
	needsAnswers(t)
	ctx := context.Background()
	b := newBench(t)
	wan, isp := testutil.Veth(t, b.here, b.there, testutil.VethOptions{})
	b.there.Output("tc", "qdisc", "replace", "dev", isp.Name, "root", "netem", "delay", "20ms", "limit", "20000")
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	const limit, port = 10.0, 5301
	text := fmt.Sprintf("version: 1\nlinks: {%s: {}, %s: {rate: 50Mbit}}\nworkloads:\n  held: {match: [{cgroup: %s}], ingress: {max: %gMbit}}\n",
		b.link.Name, wan.Name, group, limit)
	b.apply(t, text)
	s := status(t, b.Agent)
	if !s.OK || len(s.Limits) != 1 || s.Limits[0].Rung != string(policy.MethodEDT) || !strings.Contains(s.Limits[0].Why, fmt.Sprintf("htb holds link %q", wan.Name)) {
		t.Errorf("status: %+v", s)
	}
	for _, c := range []struct {
		name  string
		from  testutil.End
		flows string
	}{{"near", b.far, "1"}, {"near", b.far, "8"}, {"far", isp, "1"}, {"far", isp, "8"}} {
		before := b.heldNow(t).Dropped
		rate, again := b.get(t, dir, c.from.IPv4.Addr(), 5, c.flows)
		dropped := b.heldNow(t).Dropped - before
		t.Logf("%s, flows %s: %.3f of %g Mbit/s, %d segments sent again; dropped since the beginning: %d", c.name, c.flows, rate, limit, again, dropped)
		if rate > 1.02*limit || rate < 0.98*limit || again > 5 || dropped > 0 {
			t.Errorf("%s, flows %s: %.3f of %g Mbit/s, %d segments sent again, %d dropped", c.name, c.flows, rate, limit, again, dropped)
		}
	}
	arrives := arrivals(t, b.here, port)
	receiver, bulk := worker(t, b.here, dir), worker(t, b.there, "")
	to := traffic.Where{To: netip.AddrPortFrom(b.link.IPv4.Addr(), port), Congestion: "cubic"}
	if err := receiver.Receive(ctx, to.To); err != nil {
		t.Fatal(err)
	}
	if err := bulk.Send(ctx, to, 8); err != nil {
		t.Fatal(err)
	}
	held := func(way string, waits bool) {
		t.Helper()
		time.Sleep(2 * time.Second) // for what a full bucket lets through
		before := resent(t, bulk)
		rate := arrives(5 * time.Second)[0]
		after := resent(t, bulk)
		t.Logf("answered by %s: %.3f of %g Mbit/s, sent again: %+v", way, rate, limit, after.Since(before))
		if rate > 1.02*limit || rate < 0.98*limit {
			t.Errorf("answered by %s: %.3f of %g Mbit/s", way, rate, limit)
		}
		if again := after.Since(before).Segments; waits && again != 0 {
			t.Errorf("answered by %s: %d segments sent again", way, again)
		}
	}
	held("the link where they wait", true)
	b.here.Output("ip", "route", "add", b.far.IPv4.Addr().String()+"/32", "dev", wan.Name)
	b.there.Output("sysctl", "-w", "net.ipv4.conf.all.rp_filter=0")
	held("the other link", false)
	b.here.Output("ip", "route", "del", b.far.IPv4.Addr().String()+"/32", "dev", wan.Name)
	held("the link where they wait, again", true)
	if d := b.apply(t, text); len(d) != 0 {
		t.Errorf("applied again: %v", d)
	}
}

// TestAnswersThroughBridge: what a container answers waits on the link that its bridge sends it by.
func TestAnswersThroughBridge(t *testing.T) {
	testutil.Needs(t, "bridge link")
	needsAnswers(t)
	ctx := context.Background()
	b := newBench(t)
	container := testutil.NewNamespace(t)
	inside, port := testutil.Veth(t, container, b.here, testutil.VethOptions{NoIP: true})
	address := b.far.IPv4.Addr().Next() // in the subnet of the wire
	container.Output("ip", "address", "add", netip.PrefixFrom(address, b.far.IPv4.Bits()).String(), "dev", inside.Name)
	b.here.Output("ip", "link", "add", "bridge0", "type", "bridge")
	for _, of := range []string{b.link.Name, port.Name} {
		b.here.Output("ip", "link", "set", of, "master", "bridge0")
	}
	b.here.Output("ip", "link", "set", "bridge0", "up")
	dir, group := b.makeCgroup(t, "held")
	const limit, at = 10, 5301
	b.apply(t, b.answering(group, limit))
	arrives := arrivals(t, container, at)
	receiver, bulk := worker(t, container, dir), worker(t, b.there, "")
	to := traffic.Where{To: netip.AddrPortFrom(address, at), Congestion: "cubic"}
	if err := receiver.Receive(ctx, to.To); err != nil {
		t.Fatal(err)
	}
	if err := bulk.Send(ctx, to, 8); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // for what a full bucket lets through
	before := resent(t, bulk)
	rate := arrives(5 * time.Second)[0]
	after := resent(t, bulk)
	t.Logf("%.3f of %d Mbit/s, sent again: %+v, and %+v before", rate, limit, after.Since(before), before)
	if rate < 0.98*limit || rate > 1.01*limit || after.Since(before).Segments > 0 {
		t.Errorf("%.3f of %d Mbit/s, sent again: %+v", rate, limit, after.Since(before))
	}
}
