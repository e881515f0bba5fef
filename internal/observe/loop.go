package observe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/cost"
)

const (
	// turns of the loop take about a microsecond together: less than any interrupt.
	turns = 600
	// spare is how many other goroutines of this process may run without the loop's having to wait for
	// Go's scheduler: it is the CPU's time that it is about.
	spare = 64
	// chunks are looked at together, some tens of milliseconds of them: the speed of a CPU changes.
	chunks = 20000
)

// An UnusableCPU is one that a loop can not be put on.
type UnusableCPU struct {
	CPU    int
	Why    string
	Usable []int
}

// Error says why.
func (e *UnusableCPU) Error() string { return fmt.Sprintf("CPU %d is %s", e.CPU, e.Why) }

// Loop computes on one CPU for a time, and returns what it was left with there. It does nothing but compute and look at the
// clock, so what lengthens some of its chunks beside the others was taken from it. The calling
// thread is put there meanwhile.
func Loop(ctx context.Context, cpu int, during time.Duration) (loop cost.Loop, err error) {
	err = pinned(cpu, func() error {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + spare))
		began := time.Now()
		before, err := charged()
		if err != nil {
			return err
		}
		took := make([]time.Duration, chunks)
		for time.Since(began) < during {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			compute(took)
			loop.Add(took)
		}
		after, err := charged()
		loop.Apparent, loop.Elapsed = after-before, time.Since(began)
		return err
	})
	return loop, err
}

var result uint64 // what is computed, so that it has to be

// compute times chunks.
func compute(took []time.Duration) {
	began := time.Now()
	last := time.Since(began)
	x := result
	for i := range took {
		for range turns {
			x = x*6364136223846793005 + 1442695040888963407
		}
		now := time.Since(began)
		took[i] = now - last
		last = now
	}
	result = x
}

// charged is what the kernel says that the calling thread has used.
func charged() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0, fmt.Errorf("read CPU time of the loop: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// pinned runs fn on a thread that runs on one CPU only.
func pinned(cpu int, fn func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return fmt.Errorf("read affinity: %w", err)
	}
	one.Set(cpu)
	defer func() { err = errors.Join(err, unix.SchedSetaffinity(0, &old)) }()
	err = unix.SchedSetaffinity(0, &one)
	if err == nil && !one.IsSet(cpu) || errors.Is(err, unix.EINVAL) {
		return unusable(cpu)
	}
	if err != nil {
		return fmt.Errorf("put the loop on CPU %d: %w", cpu, err)
	}
	return fn()
}

// unusable says why a CPU can not be had: it is off, or outside of the cpuset of this process.
func unusable(cpu int) error {
	online, err := OnlineCPUs()
	if err != nil {
		return err
	}
	if !slices.Contains(online, cpu) {
		return &UnusableCPU{cpu, "not on", online}
	}
	var mine []int
	for _, other := range online {
		var one unix.CPUSet
		if one.Set(other); unix.SchedSetaffinity(0, &one) == nil { // the caller puts it back
			mine = append(mine, other)
		}
	}
	return &UnusableCPU{cpu, "outside of the cpuset of this process", mine}
}
