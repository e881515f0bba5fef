package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// Set gives a running process, its open sockets, those that it opens from now
// on and its children a contract. The process is not moved anywhere. A second
// Set changes the first, in one write per link and one for the limit, unless answers wait in a class;
// one that leaves nothing of it is Clear; a first one that fails leaves nothing. It returns
// ErrNoLimits where a limit is not possible, ErrNoTimes where answers can not wait as they are to,
// ErrNoBounds where a bound of memory is not, and ErrNoBinding or ErrUnknownVRF where sockets can not be bound to a VRF.
func (a *Agent) Set(ctx context.Context, pid uint32, t Terms) error {
	// The kernel side knows a process by its number in the initial namespace.
	if err := workload.CheckPIDNamespace(); err != nil {
		return err
	}
	return a.locked(func(r *state.Record) error {
		g, err := a.current(r)
		if err != nil {
			return err
		}
		defer g.Close()
		p, err := workload.ReadProcess(pid)
		if err != nil {
			return err
		}
		s := state.Set{Name: setName(pid), PID: pid, Start: p.Start}
		old, known := findSet(r, s.Name)
		if known = known && old.Process() == s.Process(); known {
			s = old
		}
		s, nothing := t.of(s, known)
		if err := errors.Join(a.canBound(ctx, t), a.canBind(ctx, t), a.sharesVRFs(t, pid)); err != nil {
			return err
		}
		var how plan.Live
		if t.limits() || s.Limits() || old.Limits() {
			if how, err = a.live(ctx, r, t); err != nil {
				return err
			}
		}
		switch {
		case nothing && known:
			return a.clear(ctx, g, r, pid)
		case nothing:
			return nil
		case how.ByClass(s.Contract()), hasClass(r, s.Name):
			return a.setByClass(ctx, g, r, s, p, known)
		case known:
			if err = a.renew(g, r, s, how); err != nil {
				err = errors.Join(err, a.promise(g, r, old, how))
			} else {
				err = a.raise(ctx, g, r, s, p)
			}
		default:
			err = a.introduce(g, r, s, how)
			if err == nil {
				err = a.raise(ctx, g, r, s, p)
			}
			if err != nil {
				err = errors.Join(err, a.withdraw(context.WithoutCancel(ctx), g, r, s.Name))
			}
		}
		always := context.WithoutCancel(ctx)
		return errors.Join(err, a.liftLast(always, g), a.followBounds(always, g), a.dropClasses(always, r))
	})
}

// renew changes a contract that is known. It takes effect first.
func (a *Agent) renew(g *bpf.Generation, r *state.Record, s state.Set, how plan.Live) error {
	if err := a.promise(g, r, s, how); err != nil {
		return err
	}
	removeSet(r, s.Name)
	r.Sets = append(r.Sets, s)
	return a.Scope.Save(r)
}

// introduce makes a contract. It is remembered first: a tag that nobody knows
// could not be undone.
func (a *Agent) introduce(g *bpf.Generation, r *state.Record, s state.Set, how plan.Live) error {
	if err := a.forget(g, r, s.Name); err != nil {
		return err
	}
	r.Sets = append(r.Sets, s)
	r.IDs = r.IDs.Assign(append(slices.Collect(maps.Keys(r.IDs.Names)), s.Name))
	if err := a.Scope.Save(r); err != nil {
		return err
	}
	return a.promise(g, r, s, how)
}

// forget makes room: contracts of processes that are gone mean nothing any more,
// and neither does one whose process' number was given to another.
func (a *Agent) forget(g *bpf.Generation, r *state.Record, reused string) error {
	tags, err := a.tags()
	if err != nil {
		return err
	}
	gone, err := a.gone(r.Sets, tags, r.IDs)
	if err != nil {
		return err
	}
	gone[reused] = true
	for name := range gone {
		if c, known := r.IDs.Names[name]; known && gone[name] {
			if err := a.retract(g, r, c); err != nil {
				return err
			}
		}
	}
	r.IDs = without(r.IDs, gone)
	r.Sets = slices.DeleteFunc(r.Sets, func(s state.Set) bool { return gone[s.Name] })
	return nil
}

// raise tags the process of a set and lets out what waits below its priority.
func (a *Agent) raise(ctx context.Context, g *bpf.Generation, r *state.Record, s state.Set, p workload.Process) error {
	c := r.IDs.Names[s.Name]
	if err := a.tag(ctx, p, c.Tag(), picksQueues(r)); err != nil {
		return err
	}
	for _, link := range sortedKeys(r.Links) {
		level := s.Priority.On(link)
		if level == policy.Unset {
			continue
		}
		l := r.Links[link]
		if _, err := a.release(g, l, rise{c.ID, -1, l.Queue.Map[level], l.Queue.Rate}); err != nil {
			return err
		}
	}
	return nil
}

// Clear takes back what Set gave to a process and its children: what the policy
// says holds again. A process that was given nothing is fine.
func (a *Agent) Clear(ctx context.Context, pid uint32) error {
	return a.locked(func(r *state.Record) error {
		g, err := a.current(r)
		if err != nil {
			return err
		}
		defer g.Close()
		if _, known := findSet(r, setName(pid)); !known {
			return nil
		}
		return a.clear(ctx, g, r, pid)
	})
}

// clear is Clear of a process that was set.
func (a *Agent) clear(ctx context.Context, g *bpf.Generation, r *state.Record, pid uint32) error {
	if err := a.withdraw(ctx, g, r, setName(pid)); err != nil {
		return err
	}
	p, err := workload.ReadProcess(pid)
	if owner := r.Tagged[pid]; owner != "" && err == nil {
		if err := a.tag(ctx, p, r.IDs.Names[owner].Tag(), picksQueues(r)); err != nil {
			return err
		}
	}
	return errors.Join(a.liftLast(ctx, g), a.followBounds(ctx, g), a.dropClasses(ctx, r))
}

// withdraw takes the contract of a set back.
func (a *Agent) withdraw(ctx context.Context, g *bpf.Generation, r *state.Record, name string) error {
	if c, known := r.IDs.Names[name]; known {
		if err := errors.Join(a.untag(ctx, c.Tag(), picksQueues(r)), a.retract(g, r, c)); err != nil {
			return err
		}
	}
	removeSet(r, name)
	r.IDs = without(r.IDs, map[string]bool{name: true})
	return a.Scope.Save(r)
}

// current opens the generation that counts.
func (a *Agent) current(r *state.Record) (*bpf.Generation, error) {
	switch {
	case r.Journal != nil:
		return nil, fmt.Errorf("%w at %q", ErrUnfinished, r.Journal.Text)
	case r.Generation == 0:
		return nil, ErrNothingApplied
	}
	return a.open(r)
}

// promise writes what a set's contract means on every link, with limits that are held in some
// way. It is there before the first packet is charged to it, and until the last one was.
func (a *Agent) promise(g *bpf.Generation, r *state.Record, s state.Set, how plan.Live) error {
	of := how.Held(s.Contract())
	c, limit := r.IDs.Names[s.Name], plan.LimitOf(of.Egress)
	if limit != (plan.Limit{}) {
		if err := a.limit(g, c.ID, limit); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(r.Links) {
		l := r.Links[name]
		if err := g.SetPromise(l.Index, c.ID, plan.PromiseOf(of, c, name, l.Queue)); err != nil {
			return err
		}
	}
	if limit == (plan.Limit{}) {
		if err := g.RemoveLimit(c.ID); err != nil {
			return err
		}
	}
	return errors.Join(
		a.receive(g, c, plan.ArrivingOf(of), r.IDs.Names),
		a.bound(g, c, s.TCPMemory, r.IDs.Names),
		a.bindSockets(g, c, s.VRF),
	)
}

// retract takes back what a contract means.
func (a *Agent) retract(g *bpf.Generation, r *state.Record, c plan.Contract) error {
	for _, name := range sortedKeys(r.Links) {
		if err := g.SetPromise(r.Links[name].Index, c.ID, plan.Promise{Priority: plan.Keep}); err != nil {
			return err
		}
	}
	nobody := plan.Contract{ID: c.ID}
	return errors.Join(g.RemoveLimit(c.ID), g.SetArriving(nobody, plan.Limit{}, nil), a.bound(g, nobody, policy.TCPMemory{}, nil), g.RemoveDomain(c.ID))
}
