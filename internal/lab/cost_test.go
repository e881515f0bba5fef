package lab

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/observe"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/thread"
)

// TestCostLab runs the lab for a moment: that it measures, not what; see TestSSHLab for its bounds.
func TestCostLab(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "BTF")
	s, err := newSession(experimentOf(t, "cpu-cost"), Options{Controller: newRawController(testutil.Cgroup2(t)), Repetitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := &costLab{session: s, looping: 300 * time.Millisecond, turns: traffic.Turns{Rounds: 10, Slice: 3 * time.Millisecond}, warmUp: traffic.Turns{Rounds: 1, Slice: 3 * time.Millisecond}}
	before := affinity(t)
	err = l.run(context.Background())
	if closed := s.close(); closed != nil {
		t.Error(closed)
	}
	if err != nil {
		t.Fatal(err)
	}
	if after := affinity(t); after != before {
		t.Errorf("the lab may use %d CPUs afterwards, %d before", after, before)
	}
	r := l.result
	logTable(t, r)
	for _, arm := range costInfo.Arms[:6] {
		effective, apparent := metric(t, r, arm, "effective_percent"), metric(t, r, arm, "apparent_percent")
		if effective.Median <= 0 || effective.Max > 100.1 || apparent.Median <= 0 {
			t.Errorf("%s: effective %+v, apparent %+v", arm, effective, apparent)
		}
		packets := metric(t, r, arm, "packets_per_second").Median
		if idle := arm == "idle"; idle != (packets < 1000) {
			t.Errorf("%s: %.0f packets a second", arm, packets)
		}
		if arm == "meter_off" {
			continue
		}
		if sums := metric(t, r, arm, "sums_percent"); sums.Min < 98 || sums.Max > 102 {
			t.Errorf("%s: the matrix sums up to %.2f %%", arm, sums.Median)
		}
		if arm == "meter_on" {
			continue
		}
		if metered := metric(t, r, arm, "stolen_percent_meter").Median; arm != "idle" && metered <= 0 || metered > 100 {
			t.Errorf("%s: interrupts took %.2f %%", arm, metered)
		}
	}
	for _, arm := range costInfo.Arms[6:8] {
		if m := metric(t, r, arm, transactions); m.Median < 500 || m.N != talks {
			t.Errorf("%s: %+v", arm, m)
		}
	}
	for _, arm := range []string{"limit_none", "limit_htb"} {
		packets, each := metric(t, r, arm, "packets_per_second"), metric(t, r, arm, "stolen_ns_per_packet")
		if packets.Median < limitedPackets/4 || packets.Max > 3*limitedPackets || each.Median < 0 || each.N != 1 {
			t.Errorf("%s: %+v packets a second, each takes %+v", arm, packets, each)
		}
	}
	if len(r.Claims) != 5 || len(r.Published) != 4 {
		t.Errorf("%d claims, %d published figures", len(r.Claims), len(r.Published))
	}
}

// TestProbeAgreesWithOpenssl has both compute by turns on the CPU that handles a constant load of packets: the part that
// openssl speed does there of what it does alone is what the loop says that it was left with. Turns are short, as what
// packets take of a CPU is not the same from one second to the next. What else takes some of it, as a hypervisor does by some
// thousand pauses a second of which neither interrupts nor stolen time tell, takes it of openssl alone, too, and the loop
// says how much: it finds nothing missing where there is no such thing (TestLoop of observe). The time in user mode that openssl
// tells as well is found by the kernel's tick, which comes more often into some interrupts than into others.
func TestProbeAgreesWithOpenssl(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	openssl := testutil.Tool(t, "openssl")
	s, err := newSession(experimentOf(t, "cpu-cost"), Options{Controller: newRawController(testutil.Cgroup2(t))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	cpus, err := observe.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	l := &costLab{session: s, cpu: cpus[len(cpus)-1]}
	back, err := observe.KeepOff(l.cpu)
	if err != nil {
		t.Fatal(err)
	}
	s.onClose(back)
	if err := l.build(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	paced := l.toSink
	paced.Pace = meteredPackets * meteredSize * 8
	const rounds = 6
	var theirs, ours, wholes []float64
	for range rounds {
		alone := startOpenssl(t, openssl, l.cpu, 2*time.Second)
		whole := alone.byTurns(t, l.cpu)
		most := alone.rate(t)
		if err := l.sender.Flood(ctx, paced, 1, meteredSize); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle)
		beside := startOpenssl(t, openssl, l.cpu, 4*time.Second)
		left := beside.byTurns(t, l.cpu)
		rate := beside.rate(t)
		if _, err := l.sender.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		theirs, ours = append(theirs, whole*rate/most), append(ours, left)
		wholes = append(wholes, whole)
	}
	t.Logf("openssl speed computes for %.1f %%, the loop for %.1f, and it was left with %.1f alone", theirs, ours, wholes)
	if theirs, ours := report.Summarise("%", theirs).Median, report.Summarise("%", ours).Median; math.Abs(theirs-ours) > 3 {
		t.Errorf("openssl speed computes for %.1f %%, the loop for %.1f: further apart than 3 points", theirs, ours)
	}
}

// opensslRun is openssl speed, computing on one CPU for a time by its own clock.
type opensslRun struct {
	cmd     *exec.Cmd
	out     bytes.Buffer
	runs    time.Duration
	stopped time.Duration // of these
}

// startOpenssl starts it on a CPU for whole seconds.
func startOpenssl(t *testing.T, openssl string, cpu int, runs time.Duration) *opensslRun {
	t.Helper()
	runtime.LockOSThread() // whose CPUs the child inherits
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	one.Set(cpu)
	if err := errors.Join(unix.SchedGetaffinity(0, &all), unix.SchedSetaffinity(0, &one)); err != nil {
		t.Fatal(err)
	}
	o := &opensslRun{runs: runs}
	o.cmd = exec.Command(openssl, "speed", "-seconds", strconv.Itoa(int(runs.Seconds())), "-bytes", "16384", "-evp", "aes-256-cbc")
	o.cmd.Stdout, o.cmd.Stderr = &o.out, &o.out
	if err := errors.Join(o.cmd.Start(), unix.SchedSetaffinity(0, &all)); err != nil {
		t.Fatal(err)
	}
	return o
}

// byTurns stops it again and again while the loop runs, and returns the percentage that the loop was left with.
func (o *opensslRun) byTurns(t *testing.T, cpu int) float64 {
	t.Helper()
	const turn = 200 * time.Millisecond
	var sum, weight float64
	for began := time.Now(); time.Since(began) < o.runs-3*turn; {
		time.Sleep(turn)
		stop := time.Now()
		if err := o.cmd.Process.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		loop, err := observe.Loop(t.Context(), cpu, turn)
		if err := errors.Join(err, o.cmd.Process.Signal(unix.SIGCONT)); err != nil {
			t.Fatal(err)
		}
		o.stopped += time.Since(stop)
		sum += loop.EffectivePercent() * loop.Elapsed.Seconds()
		weight += loop.Elapsed.Seconds()
	}
	return sum / weight
}

// rate waits for its end, and returns how many operations it did a second while it was not stopped.
func (o *opensslRun) rate(t *testing.T) float64 {
	t.Helper()
	if err := o.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &o.out)
	}
	m := regexp.MustCompile(`blocks: ([0-9]+) `).FindSubmatch(o.out.Bytes())
	if m == nil {
		t.Fatalf("openssl speed says %s", &o.out)
	}
	done, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return done / (o.runs - o.stopped).Seconds()
}

// affinity is on how many CPUs this process may run.
func affinity(t *testing.T) int {
	t.Helper()
	cpus, err := thread.Affinities()
	if err != nil {
		t.Fatal(err)
	}
	return cpus
}

func TestCostLabRefuses(t *testing.T) {
	testutil.Needs(t, "root")
	_, err := Run(context.Background(), "cpu-cost", Options{Controller: newRawController(""), Scheduler: policy.HTB})
	if err == nil {
		t.Error("a queue is refused")
	}
}
