package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// TestBurst floods a limit for a second with some twenty megabytes of datagrams, of which it lets
// through next to nothing meanwhile: what gets through is what may pass at once, out of
// the workload and into it.
func TestBurst(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	const told, slow = 512 << 10, 128 << 10 // bytes; slow is 4 s of the limit
	port := 5200
	for _, c := range []struct {
		burst     string
		direction string
		at, most  float64
	}{
		{"", "egress", 0, slow},
		{", burst: 512KiB", "egress", told, told + slow},
		{"", "ingress", 0, slow},
		{", burst: 512KiB", "ingress", told, told + slow},
	} {
		port++
		links := fmt.Sprintf("links:\n  %s: {scheduler: none}\n", b.link.Name)
		b.apply(t, fmt.Sprintf("version: 1\n%sworkloads:\n  held: {match: [{cgroup: %s}], %s: {max: 256Kbit%s}}\n", links, group, c.direction, c.burst))
		b.iperfServer(t, port)
		receiver := b.there
		args := []string{"--client", b.far.IPv4.Addr().String(), "--port", fmt.Sprint(port), "--udp", "--length", "1400", "--bitrate", "200M", "--time", "1", "--json"}
		if c.direction == "ingress" {
			args = append(args, "--reverse")
			receiver = b.here
		}
		full := receiver.UDPCount("RcvbufErrors")
		var out strings.Builder
		wait(t, start(t, b.here, dir, &out, "iperf3", args...), &out)
		var said struct {
			End struct {
				Sent struct {
					Bytes float64 `json:"bytes"`
				} `json:"sum_sent"`
				Received struct {
					Bytes float64 `json:"bytes"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal([]byte(out.String()), &said); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		// A receiver that waits for a CPU meanwhile has room for a quarter of a burst: what its socket lost has passed, too.
		lost := float64(receiver.UDPCount("RcvbufErrors") - full)
		passed := said.End.Received.Bytes*datagramWire + lost*1400*datagramWire
		t.Logf("%s%s: of %.0f bytes %.0f, on the wire, %.0f packets of which its socket lost", c.direction, c.burst, said.End.Sent.Bytes*datagramWire, passed, lost)
		if said.End.Sent.Bytes < 10*told || passed < c.at || passed > c.most {
			t.Errorf("%s%s: %.0f bytes passed at once, want %.0f to %.0f", c.direction, c.burst, passed, c.at, c.most)
		}
	}
}
