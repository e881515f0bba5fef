package traffic

import (
	"sync"
	"time"
)

// A Recorder reads counters of bytes at regular times, all of them at once.
type Recorder struct {
	counters []func() uint64
	traces   []Trace
	stop     chan struct{}
	wg       sync.WaitGroup
}

// Record starts to read counters, the first time before it returns. Stop must be
// called, once.
func Record(every time.Duration, counters ...func() uint64) *Recorder {
	r := &Recorder{counters: counters, traces: make([]Trace, len(counters)), stop: make(chan struct{})}
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
		r.traces[i].points = append(r.traces[i].points, point{now, count()})
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
