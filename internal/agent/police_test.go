package agent

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// linkLimits is a policy with limits of the link itself, held as asked; what leaves by no
// ifb.
func (b *bench) linkLimits(method policy.Method) string {
	if method == policy.MethodIfb {
		return fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none, ingress: {max: 8Mbit, method: ifb}}}\n", b.link.Name)
	}
	return fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none, egress: {max: 10Mbit, method: %[2]s}, ingress: {max: 8Mbit, method: %[2]s}}}\n", b.link.Name, method)
}

// needsMethod skips a test where the kernel can not hold a link's limit so.
func needsMethod(t *testing.T, method policy.Method) {
	t.Helper()
	if method == policy.MethodPace {
		testutil.Needs(t, "BPF atomics", "BPF tail calls")
		return
	}
	if method == policy.MethodIfb {
		testutil.Needs(t, "clsact qdisc", "u32 classifier", "mirred action", "ifb link", "htb qdisc")
		return
	}
	testutil.Needs(t, "clsact qdisc", "matchall classifier", "police action", "gact action")
}

// TestLinkLimits holds a link to a limit each way, of datagrams at three times as many and
// of TCP that nobody here paces, by each rung that the kernel has. Receivers count.
func TestLinkLimits(t *testing.T) {
	for _, method := range []policy.Method{policy.MethodPace, policy.MethodPolice, policy.MethodIfb} {
		t.Run(string(method), func(t *testing.T) {
			testutil.Proves(t, testutil.LimitOfLink)
			testutil.By(t, string(method))
			needsMethod(t, method)
			b := newBench(t)
			before := b.dump(t)
			b.apply(t, b.linkLimits(method))
			limits := 1
			if method != policy.MethodIfb {
				b.fills(t, "egress", 10, false)
				limits = 2
			}
			b.fills(t, "ingress", 8, true)
			s := status(t, b.Agent)
			for _, j := range s.Promises {
				t.Logf("%s: %s", j.Terms(), j.Evidence)
			}
			if !s.OK || len(s.Promises) != limits || len(s.Limits) != limits || s.Limits[limits-1].Promise != "ingress" || s.Limits[limits-1].Rung != string(method) {
				t.Errorf("status: %+v", s)
			}
			if err := b.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.sameAs(t, before, "reset")
		})
	}
}

// fills fills a limit of the link in one direction, in Mbit/s, and looks at what arrives:
// of a few seconds it may have as much more as the bucket has collected.
func (b *bench) fills(t *testing.T, direction string, limit float64, receives bool) {
	t.Helper()
	server, client, cgroup, to := b.there, b.here, b.dir, b.far.IPv4.Addr()
	at := ""
	if receives {
		server, client, cgroup, to, at = b.here, b.there, "", b.link.IPv4.Addr(), b.dir
	}
	const seconds = 2
	for i, args := range []string{"--udp --bitrate 30M --length 1400", "--congestion cubic"} {
		if testing.Short() && (i == 0) == receives { // one kind each way
			continue
		}
		port := 5201 + i
		if receives {
			port += 10
		}
		iperfServerIn(t, server, at, port)
		wire := []float64{datagramWire, segmentWire}[i]
		for range 4 { // a busy machine's sender may have less
			begin := time.Now()
			rate := received(t, client, cgroup, to, seconds, append(strings.Fields(args), "--port", fmt.Sprint(port))...)() * wire
			took := time.Since(begin).Seconds()
			t.Logf("%s, %s: %.2f of %g Mbit/s in %.1f s", direction, args, rate, limit, took)
			if rate > limit*(1.05*(took-1)+collected(1))/seconds { // one second is not counted
				t.Errorf("%.2f Mbit/s arrived", rate)
			}
			if rate >= 0.9*limit {
				break
			}
			if i == 0 && rate < limit/2 || rate < limit/10 {
				t.Errorf("%.2f Mbit/s arrived", rate)
			}
		}
	}
}

var matchall = regexp.MustCompile(`pref (\d+) matchall`)

// TestPoliceChanges: a limit goes from one rung to the other and back, a filter that
// others take away is missed and comes back, and no clsact of ours stays.
func TestPoliceChanges(t *testing.T) {
	needsMethod(t, policy.MethodPolice)
	b := newBench(t)
	before := b.dump(t)
	police := b.linkLimits(policy.MethodPolice)
	b.apply(t, police)
	if d := b.apply(t, police); len(d) != 0 {
		t.Errorf("again: %v", d)
	}
	for _, hook := range []string{"egress", "ingress"} {
		pref := matchall.FindStringSubmatch(b.here.Output("tc", "filter", "show", "dev", b.link.Name, hook))
		if pref == nil {
			t.Fatalf("no filter at %s", hook)
		}
		b.here.Output("tc", "filter", "del", "dev", b.link.Name, hook, "pref", pref[1])
		s := status(t, b.Agent)
		if s.OK || len(s.Differences) != 1 || !strings.Contains(s.Differences[0].Detail, hook+" not policed -> at most") {
			t.Errorf("without the filter at %s: %+v", hook, s)
		}
		b.apply(t, police)
	}
	b.apply(t, strings.Replace(police, "max: 10Mbit", "max: 20Mbit, burst: 256KiB", 1))
	if shown := b.here.Output("tc", "filter", "show", "dev", b.link.Name, "egress"); !strings.Contains(shown, "rate 20Mbit burst 256Kb") || strings.Contains(shown, "10Mbit") {
		t.Errorf("tc shows\n%s", shown)
	}
	if b.features(t.Context()).CanLimit() {
		b.apply(t, b.linkLimits(policy.MethodPace))
		if shown := b.here.Output("tc", "filter", "show", "dev", b.link.Name, "egress"); strings.Contains(shown, "matchall") {
			t.Errorf("tc shows\n%s", shown)
		}
		b.apply(t, police)
	}
	b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\n", b.link.Name))
	if shown := b.here.Output("tc", "filter", "show", "dev", b.link.Name, "ingress"); shown != "" {
		t.Errorf("tc shows\n%s", shown)
	}
	b.apply(t, police)
	if err := b.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sameAs(t, before, "reset")
}

// TestKilledPolice is TestKilledApply of limits that filters hold, on a link without a
// queue: a place for each of many leaves tells no more.
func TestKilledPolice(t *testing.T) {
	needsMethod(t, policy.MethodPolice)
	b := newBench(t)
	if places := b.killApply(t, b.linkLimits(policy.MethodPolice), stride(longStride)); places < 10 {
		t.Errorf("only %d places to break off", places)
	}
}
