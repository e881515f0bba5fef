package lab

import (
	"errors"
	"time"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/observe"
)

const (
	// costHertz is how often calls are sampled, as weir cost does.
	costHertz = 97
	// costInterval is from one reading to the next, as weir cost takes them.
	costInterval = 2 * time.Second
)

// A liveMeter runs as weir cost has it run: for a part of the time where it would cost too much else, and
// somebody reads it from time to time.
type liveMeter struct {
	meter       *observe.Meter
	first, last *cost.Reading
	quit        chan struct{}
	ended       chan error
}

func startLive(cgroup string) (*liveMeter, error) {
	meter, err := observe.Start(observe.Options{Cgroup: cgroup, Hertz: costHertz})
	if err != nil {
		return nil, err
	}
	m := &liveMeter{meter: meter, quit: make(chan struct{}), ended: make(chan error, 1)}
	if m.first, err = meter.Read(); err != nil {
		return nil, errors.Join(err, meter.Close())
	}
	go func() { m.ended <- m.follow() }()
	return m, nil
}

// follow reads until it is told to stop, and once more then.
func (m *liveMeter) follow() (err error) {
	next := time.NewTicker(costInterval)
	defer next.Stop()
	for stopped := false; err == nil && !stopped; {
		select {
		case <-next.C:
		case <-m.quit:
			stopped = true
		}
		m.last, err = m.meter.Read()
	}
	return err
}

// stop ends it and returns what it has seen.
func (m *liveMeter) stop() (*cost.Reading, error) {
	close(m.quit)
	if err := errors.Join(<-m.ended, m.meter.Close()); err != nil {
		return nil, err
	}
	return m.last.Since(m.first), nil
}
