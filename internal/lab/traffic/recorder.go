package traffic

import (
	"sync"
	"time"
)

// A Recorder reads counters of bytes at regular times, all of them at once.
type Recorder struct {
	counters []func(now time.Time) (at time.Time, bytes uint64)
	traces   []Trace
	stop     chan struct{}
	wg       sync.WaitGroup
}

// Record starts to read counters, the first time before it returns. Stop must be
// called, once.
func Record(every time.Duration, counters ...func() uint64) *Recorder {
	r := &Recorder{stop: make(chan struct{})}
	for _, count := range counters {
		r.counters = append(r.counters, func(now time.Time) (time.Time, uint64) { return now, count() })
	}
	return r.start(every)
}

// RecordTimed is Record of one counter that says itself when it was read: one of another process takes its time
// to answer.
func RecordTimed(every time.Duration, count func() (at time.Time, bytes uint64)) *Recorder {
	r := &Recorder{stop: make(chan struct{})}
	r.counters = append(r.counters, func(time.Time) (time.Time, uint64) { return count() })
	return r.start(every)
}

func (r *Recorder) start(every time.Duration) *Recorder {
	r.traces = make([]Trace, len(r.counters))
	r.read()
	r.wg.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-ticker.C:
				r.read()
			}
		}
	})
	return r
}

func (r *Recorder) read() {
	now := time.Now()
	for i, count := range r.counters {
		at, bytes := count(now)
		r.traces[i].points = append(r.traces[i].points, point{at, bytes})
	}
}

// Stop reads the counters a last time and returns what was recorded of each, in
// their order.
func (r *Recorder) Stop() []Trace {
	close(r.stop)
	r.wg.Wait()
	r.read()
	return r.traces
}
