package agent

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/testutil"
)

// clientsEnv makes the test binary eight clients of an address: each connects, sends 12 KB and waits for the end, again and again.
const clientsEnv = "WEIR_TEST_CLIENTS"

func runClients(address string) int {
	for range 8 {
		go func() {
			for {
				connectShortly(address)
			}
		}()
	}
	time.Sleep(2 * time.Minute) // the test ends them sooner
	return 1
}

// connectShortly is one connection. Whatever becomes of it the next one follows, as those of a crowd do.
func connectShortly(address string) {
	conn, err := net.DialTimeout("tcp", address, 20*time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = conn.Write(make([]byte, 12000))
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = conn.Read(make([]byte, 1))
}

// TestShortConnections has connections come and go that send less than ten segments each, which TCP paces nowhere: they get their limit,
// and no more, whichever way it holds and whoever is beside them.
func TestShortConnections(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	over := 10 * time.Second
	if testing.Short() {
		over = 5 * time.Second
	}
	for _, c := range []struct {
		name     string
		promises string // of the workload and the link
		sender   string // "here", "container" beyond the link, or "far" beyond it
		limit    float64
		beside   int // connections that send all the time
	}{
		{"sent", "links: {%[2]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[1]s}], egress: {max: 2Mbit}}}\n", "here", 2, 0},
		{"sent, and a burst", "links: {%[2]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[1]s}], egress: {max: 2Mbit, burst: 256KiB}}}\n", "here", 2, 0},
		{"sent beside four flows", "links: {%[2]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[1]s}], egress: {max: 2Mbit}}}\n", "here", 2, 4},
		{"sent by 10 Mbit/s", "links: {%[2]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[1]s}], egress: {max: 10Mbit}}}\n", "here", 10, 0},
		{"sent by 100 Mbit/s beside eight flows", "links: {%[2]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[1]s}], egress: {max: 100Mbit}}}\n", "here", 100, 8},
		{"out of a container", "links: {%[2]s: {scheduler: none, ingress: {max: 2Mbit}}}\nworkloads: {held: {match: [{cgroup: %[1]s}], egress: {max: 1Gbit}}}\n", "container", 2, 0},
		{"received", "links: {%[2]s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %[1]s}], ingress: {max: 2Mbit}}}\n", "far", 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			b.apply(t, "version: 1\n"+fmt.Sprintf(c.promises, group, b.link.Name))
			from, to, sends, receives, at := b.here, b.there, dir, "", b.far
			switch c.sender {
			case "container":
				from, to, at = b.there, b.here, b.link
			case "far":
				from, to, sends, receives, at = b.there, b.here, "", dir, b.link
			}
			where := netip.AddrPortFrom(at.IPv4.Addr(), 5201)
			receiver := worker(t, to, receives)
			if err := receiver.Receive(t.Context(), where); err != nil {
				t.Fatal(err)
			}
			if c.beside > 0 {
				if err := worker(t, from, sends).Send(t.Context(), traffic.Where{To: where}, c.beside); err != nil {
					t.Fatal(err)
				}
			}
			clients := exec.Command("/proc/self/exe")
			clients.Env = append(os.Environ(), clientsEnv+"="+where.String())
			launch(t, from, sends, clients)
			time.Sleep(6 * time.Second) // what may pass at first has passed, and the window of status that has it
			most := 1.02 + 12000*8/1e6/c.limit/over.Seconds()
			mbit := perSecond(func() float64 {
				r, err := receiver.Received(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return float64(r.Bytes) * segmentWire
			}, sleeping(over)) * 8 / 1e6
			t.Logf("%.3f Mbit/s, of %g", mbit, c.limit)
			if mbit > most*c.limit {
				t.Errorf("%.3f Mbit/s on the wire, above the limit of %g", mbit, c.limit)
			}
			if mbit < 0.85*c.limit {
				t.Errorf("%.3f Mbit/s on the wire, of the limit of %g", mbit, c.limit)
			}
			if s := status(t, b.Agent); !s.OK {
				t.Errorf("status: %+v", s.Promises)
			}
		})
	}
}
