package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// The loop is charged for what it runs, and does not do more than that. Where nothing but the kernel can take
// its CPU, it does as much: what it finds missing elsewhere is not its own.
func TestLoop(t *testing.T) {
	cpus, err := OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Loop(context.Background(), cpus[len(cpus)-1], 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	effective, apparent := l.EffectivePercent(), l.ApparentPercent()
	t.Logf("effective %.1f %%, apparent %.1f %%", effective, apparent)
	if effective <= 0 || effective > 100.01 || apparent <= 0 || apparent > 101 {
		t.Errorf("effective %.1f %%, apparent %.1f %%", effective, apparent)
	}
	if effective > apparent+3 {
		t.Error("the loop does more than it is charged for")
	}
	if left := l.LeftPercent(); testutil.VirtualClock() && left < 99 {
		t.Errorf("it computes for %.1f %% of what it is charged for, where nothing interrupts it but a tick", left)
	}
	if l.Elapsed < 300*time.Millisecond {
		t.Errorf("it ended after %s", l.Elapsed)
	}
}

func TestLoopElsewhere(t *testing.T) {
	var unusable *UnusableCPU
	if _, err := Loop(context.Background(), 100000, time.Second); !errors.As(err, &unusable) || unusable.Why != "not on" {
		t.Errorf("CPU 100000: %v", err)
	}
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil || may.Count() == 0 {
		t.Errorf("the thread stays on %d CPUs, %v", may.Count(), err)
	}
}

// A process that is kept to some CPUs is told which.
func TestLoopOutsideCpuset(t *testing.T) {
	cpus, err := OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	set := testutil.Cgroup1(t, "cpuset")
	kept, other := cpus[0], cpus[len(cpus)-1]
	if kept == other {
		t.Fatal("there is one CPU only")
	}
	for file, value := range map[string]string{"cpuset.cpus": strconv.Itoa(kept), "cpuset.mems": "0"} {
		if err := os.WriteFile(filepath.Join(set, file), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", loopVariable, other))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	moved := os.WriteFile(filepath.Join(set, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
	if err := errors.Join(moved, in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("CPU %d is outside of the cpuset of this process; usable: [%d]\n", other, kept)
	if out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func TestLoopStopped(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := Loop(ctx, 0, time.Minute); !errors.Is(err, why) {
		t.Errorf("stopped: %v", err)
	}
}
