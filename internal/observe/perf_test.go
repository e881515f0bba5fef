package observe

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/testutil"
)

// perf, which only looks at stacks some hundred times a second, finds as much time in net_rx_action as the meter. It sees
// what the meter's programs take there, too.
func TestPerfAgrees(t *testing.T) {
	perf := testutil.Tool(t, "perf")
	top := testutil.Cgroup2(t)
	testutil.Netns(t)
	startSink(t, top, "127.0.0.1:7008")
	m := startMeter(t, top)
	s := newSource(t)
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		s.send(4*time.Second, "127.0.0.1:7008")
	}()
	time.Sleep(100 * time.Millisecond)
	data := filepath.Join(t.TempDir(), "perf.data")
	r := during(t, m, func() {
		if out, err := exec.Command(perf, "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", "499", "-o", data, "--", "sleep", "2").CombinedOutput(); err != nil {
			t.Errorf("perf record: %v: %s", err, out)
		}
	})
	<-sending
	out, err := exec.Command(perf, "report", "-i", data, "--stdio", "--no-children", "-g", "none", "--parent", "^net_rx_action$", "--sort", "parent").CombinedOutput()
	if err != nil {
		t.Fatalf("perf report: %v: %s", err, out)
	}
	all := number(t, out, `Event count \(approx\.\): ([0-9]+)`) / 1e9
	part := number(t, out, `([0-9.]+)%  net_rx_action`) / 100
	var measured time.Duration
	for _, c := range r.CPUs {
		measured += c.Time[cost.RX]
	}
	// What is read before perf begins and after it has ended is in the meter's only.
	near(t, "of a CPU in net_rx", measured.Seconds()/r.At.Seconds(), all*part/2, 0.25)
}

func number(t *testing.T, text []byte, pattern string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %s", pattern, text)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
