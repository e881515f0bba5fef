package agent

import (
	"fmt"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A Class is what one class of a link has sent since it was made.
type Class struct {
	ClassStatus
	Levels []policy.Level // the priorities that it carries
	Floor  policy.Rate    // what it gets even if more urgent classes want all
}

// Class reads the classes of a link under contract, the least urgent first. It
// takes no lock: it is for those who look often.
func (a *Agent) Class(link string) ([]Class, error) {
	l, err := a.link(link)
	if err != nil {
		return nil, err
	}
	var all []Class
	err = a.inScope(func() error {
		counters, err := tc.Counters(l.Index)
		for _, c := range counters {
			class := Class{ClassStatus: ClassStatus{c.Class, c.Packets, c.Bytes, c.Drops, c.Backlog}}
			class.Floor = tc.Floor(l.Queue)
			for level, carrier := range l.Queue.Map {
				if int(carrier) == c.Class {
					class.Levels = append(class.Levels, policy.Level(level))
				}
			}
			all = append(all, class)
		}
		return err
	})
	return all, err
}

// Rung names the scheduler that keeps the order on a link; "" if none does.
func (a *Agent) Rung(link string) string {
	l, err := a.link(link)
	if err != nil {
		return ""
	}
	return l.Queue.String()
}

func (a *Agent) link(name string) (state.LinkRecord, error) {
	r, err := a.Scope.Load()
	if err != nil {
		return state.LinkRecord{}, err
	}
	l, ok := r.Links[name]
	if !ok {
		return l, fmt.Errorf("link %s: %w", name, ErrNothingApplied)
	}
	return l, nil
}
