package traffic

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// hog takes a CPU from all that has no higher a priority in real time than a vigil's guard, for less than the
// 10 ms after which Go takes it from a goroutine. The collector of garbage would do so earlier.
func hog(t *testing.T, cpu int, span time.Duration) (begin, end time.Time) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends with the goroutine
		err := stayOn(cpu)
		if err == nil {
			err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 2}, 0)
		}
		begin = time.Now()
		for err == nil && time.Since(begin) < span {
		}
		end = time.Now()
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return begin, end
}

// No thread of a process that keeps a vigil goes after its guards, for one of these would wait for it and keep the CPU.
func TestVigilUrgent(t *testing.T) {
	testutil.Needs(t, "root")
	w, err := StartWorker("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx := context.Background()
	if err := w.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // in which the runtime of Go begins more
	tasks := filepath.Join("/proc", strconv.Itoa(w.cmd.Process.Pid), "task")
	threads, err := os.ReadDir(tasks)
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		if attr.Policy != unix.SCHED_FIFO {
			t.Errorf("thread %d of %d goes after the guards: %+v", id, len(threads), *attr)
		}
	}
	if _, err := w.Watched(ctx); err != nil {
		t.Fatal(err)
	}
}

// A CPU that nobody else can have is away from the first look after it is taken until it is given back.
func TestVigil(t *testing.T) {
	testutil.Needs(t, "root")
	w, err := StartWorker("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	all, err := cpus()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, cpu := range all {
		if err := w.Watch(ctx); err != nil {
			t.Fatal(err)
		}
		begin, end := hog(t, cpu, 5*time.Millisecond)
		away, err := w.Watched(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var covered bool
		for _, a := range away {
			held := min(a.End.Sub(begin), a.End.Sub(a.Begin), end.Sub(a.Begin))
			covered = covered || a.CPU == cpu && held >= 4*time.Millisecond
			if a.CPU < 0 || !a.Begin.Before(a.End) {
				t.Errorf("%+v", a)
			}
		}
		if !covered {
			t.Errorf("CPU %d was taken from %v to %v, seen: %+v", cpu, begin, end, away)
		}
	}
	// Who has ended a vigil keeps none.
	if away, err := w.Watched(ctx); err != nil || len(away) > 0 {
		t.Errorf("after the end: %+v, %v", away, err)
	}
}
