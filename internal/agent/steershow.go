package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// QueueRates are what the queues of devices receive in a second, and where that is handled.
type QueueRates struct {
	SchemaVersion string              `json:"schema_version"`
	When          time.Time           `json:"when"` // its end
	Seconds       float64             `json:"seconds"`
	Links         []plan.DeviceSpeed  `json:"links"`
	Queues        []plan.QueueSpeed   `json:"queues"`
	CPUs          []plan.SoftnetSpeed `json:"cpus"` // that handled packets, of all devices and namespaces
	Steered       []SteeringStatus    `json:"steered,omitempty"`
	Warnings      []string            `json:"warnings,omitempty"`
}

// A QueueWatch takes readings of devices' queues. It remembers the last one.
type QueueWatch struct {
	agent   *Agent
	link    string
	when    time.Time
	devices map[string]plan.DeviceReading
	softnet plan.SoftnetReading
}

// WatchQueues begins to watch the queues of a link, or of all but loopbacks for "".
func (a *Agent) WatchQueues(link string) *QueueWatch { return &QueueWatch{agent: a, link: link} }

// Next is what happened since the last time that it was called; the first time it looks
// twice, so long apart.
func (w *QueueWatch) Next(ctx context.Context, apart time.Duration) (*QueueRates, error) {
	if w.when.IsZero() {
		if _, err := w.look(); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(apart):
		}
	}
	was := *w
	names, err := w.look()
	if err != nil {
		return nil, err
	}
	rates := &QueueRates{
		SchemaVersion: schemaVersion, When: w.when, Seconds: w.when.Sub(was.when).Seconds(),
		Links: []plan.DeviceSpeed{}, Queues: []plan.QueueSpeed{},
	}
	for _, name := range names {
		before, there := was.devices[name]
		if !there {
			before = w.devices[name]
		}
		device, queues := plan.QueueSpeeds(before, w.devices[name])
		rates.Links, rates.Queues = append(rates.Links, device), append(rates.Queues, queues...)
	}
	rates.CPUs = plan.SoftnetSpeeds(was.softnet, w.softnet, rates.Seconds)
	err = w.agent.reading(func(r *state.Record) error {
		rates.Steered, rates.Warnings = w.agent.steerings(r)
		return nil
	})
	return rates, err
}

// look takes a reading, and returns the names of the devices in order.
func (w *QueueWatch) look() (names []string, err error) {
	w.devices = map[string]plan.DeviceReading{}
	err = w.agent.inScope(func() error {
		names = []string{w.link}
		if w.link == "" {
			if names, err = steer.Names(); err != nil {
				return err
			}
		}
		for _, name := range names {
			err := steer.On(name, func(d *steer.Device) error {
				reading, err := d.Count()
				w.devices[name] = reading
				return err
			})
			if w.link == "" && (errors.Is(err, steer.ErrNoDevice) || errors.Is(err, fs.ErrNotExist)) {
				delete(w.devices, name)
				continue // it went this moment
			}
			if err != nil {
				return fmt.Errorf("link %s: %w", name, err)
			}
		}
		w.when, w.softnet = time.Now(), nil
		w.softnet, err = steer.Softnet()
		return err
	})
	kept := names[:0]
	for _, name := range names {
		if _, there := w.devices[name]; there {
			kept = append(kept, name)
		}
	}
	return kept, err
}
