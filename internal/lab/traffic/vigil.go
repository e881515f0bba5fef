package traffic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Vigil notes when a CPU is away. On each a thread that goes before all others asks to be woken every half a
// millisecond: where it is late no process runs there, whatever is due. The CPU is somebody else's then, as it may be
// in a virtual machine whose host has other work, or its kernel does not let go of it.
//
// It belongs into a process that does nothing else, and whose threads are all urgent: who shares one with busy goroutines
// waits for those, too.
type Vigil struct {
	end    context.CancelFunc
	guards sync.WaitGroup

	mu   sync.Mutex
	away []Absence
}

// An Absence is a time in which a CPU was away.
type Absence struct {
	CPU   int       `json:"cpu"`
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
}

const (
	// glance is from one look at a CPU to the next.
	glance = 500 * time.Microsecond
	// notable is how late a look must be to be noted: far more than a busy kernel makes it.
	notable = time.Millisecond
)

// KeepVigil watches all CPUs that this process may have, until End.
func KeepVigil() (*Vigil, error) {
	all, err := cpus()
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	v := &Vigil{end: end}
	ready := make(chan error, len(all))
	for _, cpu := range all {
		v.guards.Go(func() { v.guard(ctx, cpu, ready) })
	}
	for range all {
		err = errors.Join(err, <-ready)
	}
	if err != nil {
		v.End()
		return nil, fmt.Errorf("watch CPUs: %w", err)
	}
	return v, nil
}

// guard takes the goroutine's thread, which ends with it.
func (v *Vigil) guard(ctx context.Context, cpu int, ready chan<- error) {
	due, err := newAlarm(ctx)
	// One that goes before others only by being nice to nobody would take their turns for absences.
	err = errors.Join(err, realTime(0), stayOn(cpu))
	now := time.Now()
	ready <- err
	for on := err == nil; on; {
		then := now.Add(glance)
		on = due.at(then)
		// Before it ends, for a CPU may have been away until then.
		if now = time.Now(); now.Sub(then) >= notable {
			v.mu.Lock()
			v.away = append(v.away, Absence{cpu, then, now})
			v.mu.Unlock()
		}
	}
}

// End ends the vigil and returns the absences, in the order of their ends.
func (v *Vigil) End() []Absence {
	v.end()
	v.guards.Wait()
	return v.away
}
