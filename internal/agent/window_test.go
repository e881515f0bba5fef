package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// A download is what an iperf3 client got, and what its sender had to send again.
type download struct {
	End struct {
		Sent struct {
			Retransmits int `json:"retransmits"`
		} `json:"sum_sent"`
		Received struct {
			BitsPerSecond float64 `json:"bits_per_second"`
		} `json:"sum_received"`
	} `json:"end"`
}

// get downloads for some seconds, and returns what came in Mbit/s on the wire, and the
// segments that were sent again. The first two seconds do not count: a window that is open
// can not be taken back, so those of connections that start together are too wide.
func (b *bench) get(t *testing.T, cgroup string, from netip.Addr, seconds int, flows string) (rate float64, again int) {
	t.Helper()
	var out strings.Builder
	cmd := start(t, b.here, cgroup, &out, "iperf3", "--client", from.String(), "--port", "5201", "--reverse",
		"--omit", "2", "--time", fmt.Sprint(seconds), "--parallel", flows, "--congestion", "cubic", "--json")
	wait(t, cmd, &out)
	var d download
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return d.End.Received.BitsPerSecond / 1e6 * segmentWire, d.End.Sent.Retransmits
}

// farAway puts so many milliseconds between the bench and its peer, and has both know of
// congestion or not.
func (b *bench) farAway(t *testing.T, ms int, ecn bool) {
	t.Helper()
	b.there.Output("tc", "qdisc", "replace", "dev", b.far.Name, "root", "netem", "delay", fmt.Sprintf("%dms", ms), "limit", "20000")
	value := "0"
	if ecn {
		value = "1"
	}
	for _, ns := range []*testutil.Namespace{b.here, b.there} {
		ns.Do(func() {
			if err := os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte(value), 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReceiveWindows downloads from a server that is 20 ms away, by cubic, below a limit of
// what is received: the windows that the receivers offer hold it back, so that it sends hardly
// anything again; a plain policer of the same rate has it send ten times as much again.
func TestReceiveWindows(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "netem qdisc", "nft")
	for _, ecn := range []bool{false, true} {
		for _, flows := range []string{"1", "8"} {
			if testing.Short() && ecn == (flows == "8") { // many lose more where they are told by losses only
				continue
			}
			t.Run(fmt.Sprintf("ecn %v flows %s", ecn, flows), func(t *testing.T) {
				if again, policed := receivedPoliced(t, 20, ecn, flows); again*10 > policed {
					t.Errorf("%d segments were sent again, and %d where a plain policer dropped", again, policed)
				}
			})
		}
	}
}

// TestReceiveWindowOfNeighbours is the same without the 20 ms: no window is small enough there, but a sender that
// loses the last that it had on its way waits, and sends a tenth as much again.
func TestReceiveWindowOfNeighbours(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "netem qdisc", "nft")
	again, policed := 0, 0
	for _, flows := range []string{"1", "8"} {
		t.Run("flows "+flows, func(t *testing.T) {
			a, p := receivedPoliced(t, 0, false, flows)
			again, policed = again+a, policed+p
		})
	}
	if again*10 > policed {
		t.Errorf("%d segments were sent again, and %d where a plain policer dropped", again, policed)
	}
}

// receivedPoliced downloads from so many milliseconds away, once below a plain policer and once below a limit of
// what is received, and returns what was sent again then and before.
func receivedPoliced(t *testing.T, ms int, ecn bool, flows string) (again, policed int) {
	t.Helper()
	const limit, seconds = 20, 5
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.farAway(t, ms, ecn)
	b.iperfServer(t, 5201)
	// As most are set up: 10 ms, and one packet of any size.
	b.here.Output("nft", fmt.Sprintf("add table inet plain; add chain inet plain in { type filter hook input priority 0; };"+
		"add rule inet plain in tcp sport 5201 limit rate over %d kbytes/second burst 64 kbytes drop", limit*1000/8))
	_, policed = b.get(t, dir, b.far.IPv4.Addr(), seconds, flows)
	b.here.Output("nft", "delete table inet plain")
	b.apply(t, receiving(group, fmt.Sprintf("%dMbit", limit)))
	rate, again := b.get(t, dir, b.far.IPv4.Addr(), seconds, flows)
	t.Logf("%.2f Mbit/s, %d segments sent again, policed %d; %+v", rate, again, policed, b.heldNow(t))
	if rate < 0.8*limit || rate > limit*(1.02+collected(seconds)) { // the bucket may be full
		t.Errorf("%.2f Mbit/s below a limit of %d", rate, limit)
	}
	return again, policed
}

// TestReceiveWindowIsGivenBack holds a running download back and lets it go: it is as
// fast as before.
func TestReceiveWindowIsGivenBack(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "netem qdisc")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.farAway(t, 20, false)
	b.iperfServer(t, 5201)
	const limit = 4
	b.apply(t, receiving(group, fmt.Sprintf("%dMbit", limit)))
	start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--reverse", "--time", "60", "--congestion", "cubic")
	untilBusy(t, b.downloaded)
	time.Sleep(2 * time.Second) // for its window to settle
	const seconds = 3
	held := b.downloaded(t, seconds*time.Second) * segmentWire
	h := b.heldNow(t)
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	free := 0.0
	for range 20 { // TCP grows again
		if free = b.downloaded(t, time.Second); free > 3*limit {
			break
		}
	}
	t.Logf("%.2f Mbit/s below a limit of %d (%+v), %.2f Mbit/s without", held, limit, h, free)
	if held < 0.8*limit || held > limit*(1.02+collected(seconds)) || free < 3*limit {
		t.Errorf("%.2f Mbit/s below a limit of %d, %.2f Mbit/s without", held, limit, free)
	}
}
