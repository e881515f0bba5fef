package agent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// small is the payload of the datagrams that limits of packets are tried with, in bytes.
const small = 64

// datagrams starts an iperf3 client that sends small datagrams, so many a second; at its
// end it returns how many of those of three seconds the receiver had, a second.
func datagrams(t *testing.T, ns *testutil.Namespace, cgroup string, to netip.Addr, pps, port int) func() float64 {
	t.Helper()
	end := received(t, ns, cgroup, to, 3, "--udp", "--length", strconv.Itoa(small), "--bitrate", strconv.Itoa(pps*small*8), "--port", strconv.Itoa(port))
	return func() float64 { return end() * 1e6 / 8 / small }
}

// arrives has a limit of packets filled, and more: what arrives has to be the limit within
// a hundredth. A bucket of 10 ms collects nothing for a sender that others keep from a CPU
// for longer, so less than that is tried again; more never is.
func arrives(t *testing.T, want float64, flood func() float64) {
	t.Helper()
	got := 0.0
	for range 4 {
		got = flood()
		t.Logf("%.1f of %.1f packets/s arrived", got, want)
		if got >= 0.99*want {
			break
		}
	}
	if got < 0.99*want || got > 1.01*want {
		t.Errorf("%.1f packets/s arrived, want %.1f", got, want)
	}
}

// packetRate is how many packets the link sends a second, over a time.
func (b *bench) packetRate(t *testing.T, over time.Duration) float64 {
	t.Helper()
	return perSecond(func() float64 { return float64(b.sent(t).Packets) }, sleeping(over))
}

// kept checks that status judges so many promises, all kept, and logs them.
func (b *bench) kept(t *testing.T, promises int) (all []plan.Judgement) {
	t.Helper()
	s := status(t, b.Agent)
	for _, j := range s.Promises {
		t.Logf("%s %s: %s", j.Workload, j.Terms(), j.Evidence)
	}
	if !s.OK || len(s.Promises) != promises {
		t.Errorf("status: %+v", s)
	}
	return s.Promises
}

// TestPPS holds small datagrams to so many a second, by their receiver's own count: of a
// workload on its way out and at its sockets, and of a link that they arrive by. Beside a
// limit of bandwidth the lower one counts.
func TestPPS(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	const pps = 5000
	dir, group := b.makeCgroup(t, "held")
	// A datagram of 64 bytes has 106 on the wire: 2 Mbit/s are 2358 of them.
	const bandwidth = 2e6 / 8 / (small + 42.0)
	for i, c := range []struct {
		name     string
		policy   string
		receives bool // here, from there
		want     float64
		promises int
	}{
		{"egress", "links: {%[1]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[2]s}], egress: {pps: %[3]d}}}", false, pps, 1},
		{"one link", "links: {%[1]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[2]s}], egress: {links: {%[1]s: {pps: %[3]d}}}}}", false, pps, 1},
		{"a link's egress", "links: {%[1]s: {scheduler: none, egress: {pps: %[3]d}}}", false, pps, 1},
		{"a link's ingress", "links: {%[1]s: {scheduler: none, ingress: {pps: %[3]d}}}", true, pps, 1},
		{"ingress", "workloads: {held: {match: [{cgroup: %[2]s}], ingress: {pps: %[3]d}}}", true, pps, 1},
		{"below a higher max", "links: {%[1]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[2]s}], egress: {max: 50Mbit, pps: %[3]d}}}", false, pps, 2},
		{"above a lower max", "links: {%[1]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[2]s}], egress: {max: 2Mbit, pps: %[3]d}}}", false, bandwidth, 2},
	} {
		if testing.Short() && i > 0 {
			break
		}
		t.Run(c.name, func(t *testing.T) {
			port := 5201 + i
			b.apply(t, "version: 1\n"+fmt.Sprintf(c.policy, b.link.Name, group, pps)+"\n")
			server, client, at, from, to := b.there, b.here, "", dir, b.far.IPv4.Addr()
			if c.receives {
				server, client, at, from, to = b.here, b.there, dir, "", b.link.IPv4.Addr()
			}
			iperfServerIn(t, server, at, port)
			arrives(t, c.want, func() float64 { return datagrams(t, client, from, to, 3*pps, port)() })
			b.kept(t, c.promises)
		})
	}
}

// TestPPSPaced holds TCP to so many segments a second, as the device counts them: none is
// sent twice.
func TestPPSPaced(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "ethtool")
	b := newBench(t)
	const pps = 2000
	dir, group := b.makeCgroup(t, "held")
	// So the device counts segments, and not what they were put together to.
	b.here.Output("ethtool", "--offload", b.link.Name, "tso", "off", "gso", "off")
	for name, args := range map[string][]string{"one flow": nil, "eight flows": {"--parallel", "8"}, "small segments": {"--set-mss", "536"}} {
		t.Run(name, func(t *testing.T) {
			b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %s}], egress: {pps: %d}}}\n", b.link.Name, group, pps))
			b.iperfServer(t, 5201)
			var out strings.Builder
			cmd := start(t, b.here, dir, &out, "iperf3", append([]string{"--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "6", "--json"}, args...)...)
			untilBusy(t, b.rate)
			rate := b.packetRate(t, 3*time.Second)
			wait(t, cmd, &out)
			var said struct {
				End struct {
					Sent struct{ Retransmits int } `json:"sum_sent"`
				}
			}
			if err := json.Unmarshal([]byte(out.String()), &said); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			held := b.heldNow(t)
			t.Logf("%.1f packets/s left, %d segments were sent twice, %d were dropped", rate, said.End.Sent.Retransmits, held.Dropped)
			if rate > pps*1.02 || rate < pps/2 {
				t.Errorf("%.1f packets/s left below a limit of %d", rate, pps)
			}
			if said.End.Sent.Retransmits > 0 || held.Dropped > 0 {
				t.Errorf("%d segments were sent twice, %d were dropped", said.End.Sent.Retransmits, held.Dropped)
			}
			if j := b.kept(t, 1)[0]; j.PPS != pps || j.Max != 0 || j.Traffic.Packets < pps || j.Traffic.Bytes != 0 {
				t.Errorf("status: %+v", j)
			}
		})
	}
}
