package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// Verbs of the journal that are about steering alone: what they leave half done says nothing
// of a policy.
const (
	verbSteer   = "steer"
	verbUnsteer = "steer --undo"
)

func aboutSteering(j *state.Journal) bool { return j.Verb == verbSteer || j.Verb == verbUnsteer }

var (
	// ErrSteered says that a link's packets are steered already.
	ErrSteered = errors.New("its packets are steered already")

	// ErrNotSteered says that nobody steers a link's packets.
	ErrNotSteered = errors.New("its packets are not steered")
)

// A Steered is what a steering has done.
type Steered struct {
	SchemaVersion string   `json:"schema_version"`
	Link          string   `json:"link"`
	CPU           *int     `json:"cpu,omitempty"`   // missing: RPS is off, and no more
	Queue         *int     `json:"queue,omitempty"` // missing: all have a part
	Way           string   `json:"way"`
	Changes       []string `json:"changes"`            // in words; none: it was so already, and nothing is remembered
	Warnings      []string `json:"warnings,omitempty"` // what may bring packets elsewhere all the same
}

// Steer has one CPU handle what a link receives, by what the device has for that, or
// changes nothing. What was there before is in the record before anything is changed.
func (a *Agent) Steer(ctx context.Context, link string, ask plan.SteerAsk) (done *Steered, err error) {
	err = a.locked(func(r *state.Record) error {
		if r.Journal != nil {
			return fmt.Errorf("%w at %q", ErrUnfinished, r.Journal.Text)
		}
		if err := a.followSteered(r); err != nil {
			return err
		}
		if was, steered := r.Steered[link]; steered {
			return fmt.Errorf("link %s: %w, since %s", link, ErrSteered, was.When.Local().Format(time.DateTime))
		}
		return a.inScope(func() error {
			return steer.On(link, func(d *steer.Device) error {
				done, err = a.steer(ctx, r, d, ask)
				return err
			})
		})
	})
	if errors.Is(err, steer.ErrNoDevice) {
		err = fmt.Errorf("link %s: %w", link, err)
	}
	return done, err
}

func (a *Agent) steer(ctx context.Context, r *state.Record, d *steer.Device, ask plan.SteerAsk) (*Steered, error) {
	if ask.CPU != plan.NoCPU {
		if err := steer.CheckCPU(ask.CPU); err != nil {
			return nil, err
		}
	}
	spread, err := d.Read()
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", d.Name, err)
	}
	s, err := plan.Steer(spread, ask)
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", d.Name, err)
	}
	done := &Steered{SchemaVersion: schemaVersion, Link: d.Name, CPU: none(s.CPU), Queue: none(s.Queue), Way: s.Way, Changes: []string{}, Warnings: warnOf(spread)}
	for _, x := range s.Settings {
		done.Changes = append(done.Changes, x.String())
	}
	if len(s.Settings) == 0 {
		return done, nil
	}
	if r.Steered == nil {
		r.Steered = map[string]state.SteerRecord{}
	}
	record := state.SteerRecord{Index: d.Index, When: a.now(), Steering: *s}
	r.Steered[d.Name] = record
	c := &change{Agent: a, verb: verbSteer, record: r, beside: true}
	for _, x := range s.Settings {
		c.add(fmt.Sprintf("link %s: set %s", d.Name, x), func() error { return d.Apply(x, x.Shall) })
	}
	c.add("read everything back and compare", func() error {
		for _, x := range s.Settings {
			if is, err := d.Value(x); err != nil || is != x.Shall {
				return errors.Join(fmt.Errorf("%w: %s of %s is %s", ErrNotProved, x.Object(), d.Name, x.Words(is)), err)
			}
		}
		return nil
	})
	c.add("remember what was steered", func() error {
		record.Whole = true
		r.Steered[d.Name] = record
		return c.save()
	})
	if err := c.run(ctx); err != nil {
		// All or nothing, even if the caller gave up.
		if back := a.unsteer(context.WithoutCancel(ctx), r, []string{d.Name}); back != nil {
			return nil, fmt.Errorf("%w; and going back: %w", err, back)
		}
		return nil, fmt.Errorf("%w (%w)", err, ErrRolledBack)
	}
	return done, c.end()
}

// none is a number, nil for what stands for none (plan.NoCPU, plan.NoQueue).
func none(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// warnOf says what a device does that no setting of ours holds.
func warnOf(s plan.Spread) []string {
	if !s.Threaded {
		return nil
	}
	return []string{"its queues are polled in threads of their own (threaded NAPI), which run where the scheduler puts them"}
}

// Unsteer puts back what steering has changed on a link, or on all of them for "". It returns
// the links, and ErrNotSteered where there are none.
func (a *Agent) Unsteer(ctx context.Context, link string) (links []string, err error) {
	err = a.with(a.Scope.LockForChange, func(r *state.Record) error { // what was broken off is asked for here
		if r.Journal != nil && !aboutSteering(r.Journal) {
			return fmt.Errorf("%w at %q", ErrUnfinished, r.Journal.Text)
		}
		if err := a.followSteered(r); err != nil {
			return err
		}
		if links = sortedKeys(r.Steered); link != "" {
			if !slices.Contains(links, link) {
				links = nil
				return fmt.Errorf("link %s: %w", link, ErrNotSteered)
			}
			links = []string{link}
		}
		return a.unsteer(ctx, r, links)
	})
	return links, err
}

// unsteer is a change of its own, beside the policy.
func (a *Agent) unsteer(ctx context.Context, r *state.Record, links []string) error {
	c := &change{Agent: a, verb: verbUnsteer, record: r, beside: true}
	for _, link := range links {
		c.removeSteering(link)
	}
	if len(c.steps) == 0 {
		return nil
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	return c.end()
}

// removeSteering adds the steps that put back what was steered on a link. What somebody
// else has changed since stays, and so does what is gone.
func (c *change) removeSteering(link string) {
	was := c.record.Steered[link]
	was.Whole = false
	c.record.Steered[link] = was // on file before the first step
	// Backwards: packets are handed out to all queues again before RPS spreads them.
	for _, x := range slices.Backward(was.Settings) {
		c.add(fmt.Sprintf("link %s: put %s back", link, x.Object()), func() error {
			return c.onSteered(was.Index, func(d *steer.Device) error {
				is, err := d.Value(x)
				if err == nil && is == x.Shall {
					err = d.Apply(x, x.Was)
				}
				if errors.Is(err, steer.ErrGone) {
					return nil
				}
				return err
			})
		})
	}
	c.add(fmt.Sprintf("forget that link %s was steered", link), func() error {
		delete(c.record.Steered, link)
		return c.save()
	})
}

// onSteered calls fn with the device of a number, whatever its name is now; without one it
// does nothing.
func (a *Agent) onSteered(index int, fn func(*steer.Device) error) error {
	return a.inScope(func() error {
		name, err := steer.NameOf(index)
		if err != nil || name == "" {
			return err
		}
		if err = steer.On(name, fn); errors.Is(err, steer.ErrNoDevice) {
			return nil // it went this moment
		}
		return err
	})
}

// followSteered gives links whose devices were renamed since their new names. What is known
// of a device that is gone stays under its old name, unless another one has that now.
func (a *Agent) followSteered(r *state.Record) error {
	if len(r.Steered) == 0 {
		return nil
	}
	links, gone := map[string]state.SteerRecord{}, map[string]state.SteerRecord{}
	err := a.inScope(func() error {
		for old, was := range r.Steered {
			name, err := steer.NameOf(was.Index)
			if err != nil {
				return err
			}
			if name == "" {
				gone[old] = was
			} else {
				links[name] = was
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for old, was := range gone {
		if _, taken := links[old]; !taken {
			links[old] = was
		}
	}
	r.Steered = links
	return nil
}

// endBrokenSteering takes back what a steering, or the end of one, has left half done, so that
// what follows finds a host that is either steered or not.
func (a *Agent) endBrokenSteering(r *state.Record) error {
	var links []string
	for _, link := range sortedKeys(r.Steered) {
		if !r.Steered[link].Whole {
			links = append(links, link)
		}
	}
	if r.Journal != nil && !aboutSteering(r.Journal) {
		return nil // that comes first
	}
	if len(links) > 0 {
		if err := a.unsteer(context.Background(), r, links); err != nil {
			return fmt.Errorf("end a steering that was broken off: %w", err)
		}
	}
	if r.Journal == nil {
		return nil
	}
	r.Journal = nil // it was whole, or had not begun
	return a.Scope.EndJournal()
}
