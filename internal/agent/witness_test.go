package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// start starts a program inside a namespace, and in a cgroup if one is given.
// It ends with the test.
func start(t *testing.T, ns *testutil.Namespace, cgroup string, out *strings.Builder, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(testutil.Tool(t, name), args...)
	if out != nil {
		cmd.Stdout, cmd.Stderr = out, out
	}
	launch(t, ns, cgroup, cmd)
	return cmd
}

// launch is start for a command that is made already.
func launch(t *testing.T, ns *testutil.Namespace, cgroup string, cmd *exec.Cmd) {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if cgroup != "" {
		fd, err := unix.Open(cgroup, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
	}
	// Pdeathsig is the thread's: it has to live as long as the program.
	started, ended := make(chan error), make(chan struct{})
	go ns.Do(func() {
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(ended)
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	cmd.Cancel = func() error { <-ended; return nil } // waits for the end
}

// wait waits for a started program and fails the test if it failed.
func wait(t *testing.T, cmd *exec.Cmd, out *strings.Builder) {
	t.Helper()
	_ = cmd.Cancel()
	if !cmd.ProcessState.Success() {
		t.Fatalf("%s: %v\n%s", cmd, cmd.ProcessState, out)
	}
}

// makeCgroup makes a cgroup below the bench's.
func (b *bench) makeCgroup(t *testing.T, name string) (dir, path string) {
	t.Helper()
	dir = filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return dir, b.cgroup + "/" + name
}

// iperf is what an iperf3 client says of its stream, as its server saw it.
type iperf struct {
	End struct {
		Received struct {
			BitsPerSecond float64 `json:"bits_per_second"`
		} `json:"sum_received"`
	} `json:"end"`
}

func (b *bench) iperfServer(t *testing.T, port int) {
	t.Helper()
	iperfServer(t, b.there, port)
}

func iperfServer(t *testing.T, ns *testutil.Namespace, port int) {
	t.Helper()
	iperfServerIn(t, ns, "", port)
}

// iperfServerIn starts an iperf3 server inside a namespace, and in a cgroup if one is given,
// and waits until it listens. It serves one client at a time, so nobody may dial to see.
func iperfServerIn(t *testing.T, ns *testutil.Namespace, cgroup string, port int) {
	t.Helper()
	testutil.Needs(t, "ss")
	start(t, ns, cgroup, nil, "iperf3", "--server", "--port", strconv.Itoa(port))
	for range 600 {
		if ns.Output("ss", "--listening", "--tcp", "--numeric", "--no-header", "sport", "=", fmt.Sprintf(":%d", port)) != "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("iperf3 does not listen at port %d", port)
}

// untilBusy waits until something is sent at a rate, in Mbit/s, that is more than two
// programs greeting each other, and then for as long as TCP may take to settle.
func untilBusy(t *testing.T, rate func(t *testing.T, over time.Duration) float64) {
	t.Helper()
	for range 300 {
		if rate(t, 100*time.Millisecond) > 0.5 {
			time.Sleep(time.Second)
			return
		}
	}
	t.Fatal("nothing is sent")
}

func (b *bench) iperfClient(t *testing.T, cgroup string, port int, seconds int, args ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	cmd := start(t, b.here, cgroup, &out, "iperf3", append([]string{"--client", b.far.IPv4.Addr().String(), "--port", strconv.Itoa(port),
		"--time", strconv.Itoa(seconds), "--json", "--interval", "0.5"}, args...)...)
	return cmd, &out
}

// delivered is the rate of a whole stream, in Mbit/s.
func delivered(t *testing.T, out *strings.Builder) float64 {
	t.Helper()
	var r iperf
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatalf("iperf3: %v\n%s", err, out)
	}
	return r.End.Received.BitsPerSecond / 1e6
}

// onFullLine has two streams fight at the highest rate of which the winner
// always has packets to send: an emulated CPU may not fill 100 Mbit/s.
func onFullLine(t *testing.T, fight func(rate int) (full bool)) {
	t.Helper()
	rates := []int{100, 20, 5}
	if !slices.ContainsFunc(rates, fight) {
		t.Errorf("the line was full at none of %v Mbit/s", rates)
	}
}

// TestIperf lets two real iperf3 clients in two cgroups fight for a link.
func TestIperf(t *testing.T) {
	testutil.Proves(t, testutil.Order)
	b := newBench(t)
	goldDir, gold := b.makeCgroup(t, "gold")
	ironDir, iron := b.makeCgroup(t, "iron")
	b.iperfServer(t, 5201)
	b.iperfServer(t, 5202)
	onFullLine(t, func(rate int) bool {
		b.apply(t, b.policyAt(rate, fmt.Sprintf(
			"  gold: {match: [{cgroup: %s}], priority: 12}\n  iron: {match: [{cgroup: %s}], priority: 2}\n", gold, iron)))
		looks := watch(t, b.Agent, b.link.Name)
		loser, lost := b.iperfClient(t, ironDir, 5202, 4)
		winner, won := b.iperfClient(t, goldDir, 5201, 4)
		wait(t, winner, won)
		wait(t, loser, lost)
		if !holds(t, looks(), 12, rate) {
			return false
		}
		w, l := delivered(t, won), delivered(t, lost)
		t.Logf("the receivers had %.1f and %.1f Mbit/s", w, l)
		if w <= l {
			t.Errorf("the winner's receiver had %.1f Mbit/s, the loser's %.1f", w, l)
		}
		return true
	})
	b.statusAgrees(t)
}

// statusAgrees holds status against tc's own counters. The last packets of a
// connection may go out between two looks, so it looks again a few times.
func (b *bench) statusAgrees(t *testing.T) {
	t.Helper()
	var wrong []string
	for range 10 {
		s, err := b.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		testutil.By(t, s.Links[0].Rung)
		if !s.OK {
			t.Errorf("status: %s %v", s.Verdict, s.Differences)
		}
		for _, j := range s.Promises {
			if j.Traffic.Packets == 0 {
				t.Errorf("%s: no packet was counted", j.Workload)
			}
		}
		if wrong = b.disagreements(t, s); len(wrong) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("status and tc do not agree:\n%s", strings.Join(wrong, "\n"))
}

// disagreements compares each class of the first link with what tc says of its
// leaves.
func (b *bench) disagreements(t *testing.T, s *Status) (wrong []string) {
	t.Helper()
	out := b.here.Output("tc", "-s", "class", "show", "dev", b.link.Name)
	// class htb 7e1f:801 parent …
	//  Sent 1234 bytes 56 pkt (dropped …
	// is a bucket of class 7, and 7e1f:17 all of it where there are no buckets.
	leaf := func(class int) string { return fmt.Sprintf("class htb 7e1f:(?:%x|%x0[0-7])", 0x10+class, class+1) }
	if s.Links[0].Rung != "htb" {
		out = b.here.Output("tc", "-s", "qdisc", "show", "dev", b.link.Name)
		leaf = func(class int) string { return fmt.Sprintf("qdisc [a-z_]+ %x:", 0x7e30+class) }
	}
	for _, c := range s.Links[0].Classes {
		leaves := regexp.MustCompile(leaf(c.Class)+` .*\n Sent (\d+) bytes (\d+) pkt`).FindAllStringSubmatch(out, -1)
		if len(leaves) == 0 {
			t.Fatalf("tc shows no class of %d:\n%s", c.Class, out)
		}
		var bytes, packets uint64
		for _, l := range leaves {
			b, _ := strconv.ParseUint(l[1], 10, 64)
			p, _ := strconv.ParseUint(l[2], 10, 64)
			bytes, packets = bytes+b, packets+p
		}
		if bytes != c.Bytes || packets != c.Packets {
			wrong = append(wrong, fmt.Sprintf("class %d: status says %d packets and %d bytes, tc %d and %d",
				c.Class, c.Packets, c.Bytes, packets, bytes))
		}
	}
	return wrong
}

// TestSetRunning raises the losing one of two running iperf3 streams by its
// process id, and takes it back.
func TestSetRunning(t *testing.T) {
	testutil.Proves(t, testutil.Follow)
	b := newBench(t)
	goldDir, gold := b.makeCgroup(t, "gold")
	ironDir, iron := b.makeCgroup(t, "iron")
	b.iperfServer(t, 5201)
	b.iperfServer(t, 5202)
	onFullLine(t, func(rate int) bool {
		b.apply(t, b.policyAt(rate, fmt.Sprintf(
			"  gold: {match: [{cgroup: %s}], priority: 12}\n  iron: {match: [{cgroup: %s}], priority: 2}\n", gold, iron)))
		return b.raiseRunning(t, rate, ironDir, goldDir)
	})
	b.statusAgrees(t)
}

// raiseRunning has the stream of one cgroup lose to that of another, which has
// level 12, until it is raised. It reports whether both had packets to send all
// the time.
func (b *bench) raiseRunning(t *testing.T, rate int, lowDir, highDir string) (full bool) {
	t.Helper()
	raised, up := b.iperfClient(t, lowDir, 5202, 8)
	other, down := b.iperfClient(t, highDir, 5201, 8)
	looks := watch(t, b.Agent, b.link.Name)
	time.Sleep(3 * time.Second)
	low := time.Now()
	before := procCgroup(t, raised.Process.Pid)
	if err := b.Set(context.Background(), uint32(raised.Process.Pid), Terms{Priority: &policy.Priority{Default: 15}}); err != nil {
		t.Fatal(err)
	}
	if after := procCgroup(t, raised.Process.Pid); after != before {
		t.Errorf("set moved the process from\n%sto\n%s", before, after)
	}
	high := time.Now()
	time.Sleep(3 * time.Second)
	cleared := time.Now()
	if err := b.Clear(context.Background(), uint32(raised.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	wait(t, raised, up)
	wait(t, other, down)
	all := looks()
	return holds(t, between(all, time.Time{}, low), 12, rate) && holds(t, between(all, high, cleared), 15, rate)
}

func procCgroup(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
