package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/state"
)

// A SteeringStatus is a link whose packets are steered, for an experiment.
type SteeringStatus struct {
	Link    string    `json:"link"`
	CPU     *int      `json:"cpu,omitempty"` // missing: RPS is off, and no more
	Way     string    `json:"way"`
	Since   time.Time `json:"since"`
	Changed []string  `json:"changed,omitempty"` // by others since, in words
}

// steerings reads back what is steered.
func (a *Agent) steerings(r *state.Record) (all []SteeringStatus, warnings []string) {
	if err := a.followSteered(r); err != nil {
		return nil, []string{err.Error()}
	}
	for _, link := range sortedKeys(r.Steered) {
		was := r.Steered[link]
		s := SteeringStatus{Link: link, CPU: none(was.CPU), Way: was.Way, Since: was.When}
		if !was.Whole {
			s.Changed = append(s.Changed, "that was broken off: weir steer --undo takes the rest back")
		}
		there := false
		err := a.onSteered(was.Index, func(d *steer.Device) error {
			there = true
			for _, x := range was.Settings {
				is, err := d.Value(x)
				switch {
				case errors.Is(err, steer.ErrGone):
					s.Changed = append(s.Changed, x.Object()+" is gone")
				case err != nil:
					return err
				case is != x.Shall:
					s.Changed = append(s.Changed, fmt.Sprintf("%s is %s", x.Object(), x.Words(is)))
				}
			}
			return nil
		})
		if err != nil {
			warnings = append(warnings, err.Error())
		} else if !there {
			s.Changed = []string{"the device is gone"}
		}
		all = append(all, s)
	}
	return all, warnings
}
