package observe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
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
	// garbage is how much memory this process may have before it is collected beside the loop.
	garbage = 512 << 20
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
// thread is put there meanwhile, and the others of this process elsewhere.
func Loop(ctx context.Context, cpu int, during time.Duration) (loop cost.Loop, err error) {
	back, err := KeepOff(cpu)
	if err != nil {
		return loop, err
	}
	defer func() { err = errors.Join(err, back()) }()
	defer undisturbed()()
	err = pinned(cpu, func() error {
		took := make([]time.Duration, chunks)
		compute(took) // its memory is there from now on
		for began := time.Now(); loop.Elapsed < during; loop.Elapsed = time.Since(began) {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			before, err := charged()
			if err != nil {
				return err
			}
			compute(took)
			after, err := charged()
			if err != nil {
				return err
			}
			loop.Add(took, after-before)
		}
		return nil
	})
	return loop, err
}

// undisturbed has Go leave a loop alone, until what it returns is called: no garbage is collected below a bound that
// nothing here comes near, and other goroutines have enough to run on.
func undisturbed() (back func()) {
	procs := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spare)
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(garbage)
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(procs)
	}
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
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("read CPU time of the loop: %w", err)
	}
	return time.Duration(t.Nano()), nil
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
