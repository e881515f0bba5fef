package agent

import (
	"errors"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/policy"
)

// A Class is what one class of a link has sent since it was made.
type Class struct {
	ClassStatus
	Levels []policy.Level // the priorities that it carries
	Floor  policy.Rate    // what it gets even if more urgent classes want all
}

// anew is for how long a leaf may be missing that a raise makes anew.
const anew = 100 * time.Millisecond

// Class reads the classes of a link under contract, the least urgent first. It
// takes no lock: it is for those who look often, while others change what they see.
func (a *Agent) Class(link string) ([]Class, error) {
	l, err := a.link(link)
	if err != nil {
		return nil, err
	}
	counts, err := a.classes(l.Index)
	for begin := time.Now(); errors.Is(err, tc.ErrDrift) && time.Since(begin) < anew; {
		time.Sleep(time.Millisecond)
		counts, err = a.classes(l.Index)
	}
	if err != nil {
		return nil, err
	}
	all := make([]Class, len(counts))
	for i, c := range counts {
		all[i] = Class{ClassStatus: c, Floor: tc.Floor(l.Queue)}
		for level, carrier := range l.Queue.Map {
			if int(carrier) == c.Class {
				all[i].Levels = append(all[i].Levels, policy.Level(level))
			}
		}
	}
	return all, nil
}

// classes counts what the classes of a link have sent.
func (a *Agent) classes(index int) (all []ClassStatus, err error) {
	err = a.inScope(func() error {
		counters, err := tc.Counters(index)
		for _, c := range counters {
			all = append(all, ClassStatus{c.Class, c.Packets, c.Bytes, c.Drops, c.Backlog})
		}
		return err
	})
	return all, err
}
