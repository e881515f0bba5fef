package observe

import (
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/cost"
)

// Counters read what the kernel counts by itself, where no meter can run: how often, but not for how long,
// in whose time or for whom.
type Counters struct{}

// Read returns what has been counted since the kernel began.
func (Counters) Read() (*cost.Reading, error) {
	cpus, err := OnlineCPUs()
	if err != nil {
		return nil, err
	}
	times, timesErr := cpuTimes()
	squeezed, squeezedErr := squeezes()
	runs, runsErr := softirqRuns()
	now, nowErr := monotonic()
	if err := errors.Join(timesErr, squeezedErr, runsErr, nowErr); err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	r := &cost.Reading{At: now}
	for _, cpu := range cpus {
		c := cost.CPU{Number: cpu, Busy: times[cpu].busy, Softirqs: times[cpu].softirqs, Squeezed: squeezed[cpu]}
		c.Runs[cost.RX], c.Runs[cost.TX] = runs[cpu][0], runs[cpu][1]
		r.CPUs = append(r.CPUs, c)
	}
	return r, nil
}

// Close does nothing.
func (Counters) Close() error { return nil }
