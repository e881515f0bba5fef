package observe

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// interruptions is how often a thread is interrupted to find out what that takes it, apart how long
	// there is at least between them, and patience how long all of it may take.
	interruptions = 200
	apart         = 20 * time.Microsecond
	patience      = 200 * time.Millisecond
	// gap is how many times as long as the usual two looks at the clock are apart between which something came.
	gap = 5
)

// As linux/membarrier.h has them.
const (
	membarrierPrivate         = 1 << 3
	membarrierRegisterPrivate = 1 << 4
)

// way is what it takes a CPU to get into an interrupt and out of it again, which no tracepoint sees: in a virtual
// machine often more than what is done within. A thread looks at the clock all the time on one CPU and is interrupted from
// another one: membarrier interrupts who runs with the caller's memory, and does next to nothing there.
func way() (time.Duration, error) {
	cpus, err := OnlineCPUs()
	if err != nil {
		return 0, err
	}
	if len(cpus) < 2 {
		return 0, errors.New("there is one CPU only, which none interrupts")
	}
	if err := membarrier(membarrierRegisterPrivate); err != nil {
		return 0, err
	}
	w := watcher{began: time.Now()}
	var watching sync.WaitGroup
	var failed error
	watching.Go(func() {
		failed = pinned(cpus[len(cpus)-1], func() error {
			w.watch()
			return nil
		})
	})
	err = pinned(cpus[0], w.interrupt)
	w.done.Store(true)
	watching.Wait()
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return w.usual()
}

// A watcher notices that something comes between two of its looks at the clock.
type watcher struct {
	began    time.Time
	done     atomic.Bool
	looked   atomic.Int64 // when it last did
	attempts []span       // to interrupt it
	gaps     []span       // in which something came
}

// A span of time, since a watcher began.
type span struct{ at, took time.Duration }

// watch looks at the clock all the time.
func (w *watcher) watch() {
	var least time.Duration
	for last := w.now(); !w.done.Load() && last < patience; {
		now := w.now()
		took := now - last
		switch {
		case least == 0 || took < least:
			least = took
		case took > gap*least:
			w.gaps = append(w.gaps, span{last, took - least})
			now = w.now() // to remember it may have taken a while
		}
		last = now
		w.looked.Store(int64(now))
	}
}

// interrupt does so while it looks.
func (w *watcher) interrupt() error {
	for next := w.now(); len(w.attempts) < interruptions; {
		at := w.now()
		if at > patience {
			break
		}
		if at < next || at-time.Duration(w.looked.Load()) > apart/4 {
			continue
		}
		if err := membarrier(membarrierPrivate); err != nil {
			return err
		}
		w.attempts = append(w.attempts, span{at, w.now() - at})
		next = w.now() + apart
	}
	return nil
}

func (w *watcher) now() time.Duration { return time.Since(w.began) }

// usual is what an interruption takes in the median. Who did not run just then was not interrupted.
func (w *watcher) usual() (time.Duration, error) {
	var took []time.Duration
	gaps := w.gaps
	for _, a := range w.attempts {
		var longest time.Duration
		for len(gaps) > 0 && gaps[0].at < a.at+a.took {
			if gaps[0].at >= a.at {
				longest = max(longest, gaps[0].took)
			}
			gaps = gaps[1:]
		}
		if longest > 0 {
			took = append(took, longest)
		}
	}
	if len(took) < interruptions/2 {
		return 0, fmt.Errorf("a thread that was interrupted %d times noticed %d: its CPU has too much else to do", len(w.attempts), len(took))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func membarrier(command uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0); errno != 0 {
		return fmt.Errorf("membarrier: %w", errno)
	}
	return nil
}
