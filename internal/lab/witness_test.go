package lab

import (
	"context"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/testutil"
)

// TestEngineAgreesWithIperf3 sends over one plain line with the labs' own
// engine and with iperf3, alone and with a rival: both have to see the same
// line. A busy machine may keep either of them from filling it for a while.
func TestEngineAgreesWithIperf3(t *testing.T) {
	testutil.Needs(t, "tbf qdisc")
	iperf3 := testutil.Tool(t, "iperf3")
	s, err := newSession(experimentOf(t, "ssh"), Options{Controller: newRawController("")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	l := &sshLab{session: s, line: hosts.Line{Rate: 50e6, Queue: 48 << 10}}
	if err := l.build(); err != nil {
		t.Fatal(err)
	}
	if err := l.bottleneck.SetLine(l.line); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("nsenter", "--net="+l.server.Netns(), iperf3, "--server", "--port", "5300")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait() // killed: that is its error
	}()
	line := float64(l.line.Rate) / 1e6
	agreed := func(rival bool) bool {
		stop := func() uint64 { return 0 }
		if rival {
			streams, err := traffic.Send(context.Background(), l.toRival, 1)
			if err != nil {
				t.Fatal(err)
			}
			stop = streams.Stop
			time.Sleep(settle)
		}
		theirs := iperf3Mbit(t, iperf3, l.toSSH.Netns)
		const bytes = 8 << 20
		took, err := traffic.Copy(context.Background(), l.toSSH, bytes)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		ours := bytes * 8 / 1e6 / took.Seconds()
		t.Logf("rival %t: iperf3 %.1f, engine %.1f Mbit/s", rival, theirs, ours)
		if ours > line {
			t.Errorf("the engine sees %.1f of %.1f Mbit/s", ours, line)
		}
		// Alone the line decides; beside a rival two flows find shares that are
		// never twice the same.
		low, high := 0.9*ours, 1.1*ours
		if rival {
			low, high = 0.2*line, 0.8*line
		}
		return theirs >= low && theirs <= high
	}
	for _, rival := range []bool{false, true} {
		ok := false
		for tries := 5; !ok && tries > 0; tries-- {
			ok = agreed(rival)
		}
		if !ok {
			t.Errorf("rival %t: they never agree", rival)
		}
	}
}

// iperf3Mbit is what iperf3's server received in 2 s.
func iperf3Mbit(t *testing.T, iperf3, netns string) float64 {
	t.Helper()
	args := []string{"--net=" + netns, iperf3, "--client", "10.99.2.2", "--port", "5300", "--time", "2", "--congestion", congestion(), "--json"}
	var answer struct {
		Error string `json:"error"`
		End   struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	for range 40 { // until the server listens
		out, err := exec.Command("nsenter", args...).Output()
		if err == nil {
			err = json.Unmarshal(out, &answer)
		}
		if err == nil && answer.Error == "" && answer.End.SumReceived.BitsPerSecond > 0 {
			return answer.End.SumReceived.BitsPerSecond / 1e6
		}
		t.Logf("iperf3: %v %s", err, answer.Error)
		answer.Error = ""
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("iperf3 measured nothing")
	return 0
}
