package observe

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The loop is charged for what it runs, and does not do more than that.
func TestLoop(t *testing.T) {
	cpus, err := OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	// Where others want the CPU it is chance whether they get it while the loop computes, or while it looks at what it did.
	const attempts = 5
	for attempt := 1; ; attempt++ {
		l, err := Loop(context.Background(), cpus[len(cpus)-1], 300*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		effective, apparent := l.EffectivePercent(), l.ApparentPercent()
		t.Logf("effective %.1f %%, apparent %.1f %%", effective, apparent)
		if effective <= 0 || effective > 100.01 || apparent <= 0 || apparent > 101 {
			t.Errorf("effective %.1f %%, apparent %.1f %%", effective, apparent)
		}
		if l.Elapsed < 300*time.Millisecond {
			t.Errorf("it ended after %s", l.Elapsed)
		}
		if effective <= apparent+10 {
			break
		}
		if attempt == attempts {
			t.Fatal("the loop does more than it is charged for")
		}
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

func TestLoopStopped(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := Loop(ctx, 0, time.Minute); !errors.Is(err, why) {
		t.Errorf("stopped: %v", err)
	}
}
