package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// Set gives a running process, its open sockets, those that it opens from now
// on and its children a priority. The process is not moved anywhere. A second
// Set changes the first, in one write per link.
func (a *Agent) Set(ctx context.Context, pid uint32, priority policy.Priority) error {
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
		name := setName(pid)
		old, known := findSet(r, name)
		if known && old.Start != p.Start {
			known = false // the number was given to another process
			removeSet(r, name)
		}
		s := state.Set{Name: name, PID: pid, Start: p.Start, Priority: priority}
		if !known {
			if err := a.forget(g, r); err != nil {
				return err
			}
			r.IDs = r.IDs.Assign(append(liveNames(r), name))
		}
		removeSet(r, name)
		r.Sets = append(r.Sets, s)
		// A new contract is remembered first: a tag that nobody knows could not be
		// undone. A known one takes effect first.
		steps := []func() error{
			func() error { return a.Scope.Save(r) },
			func() error { return a.promise(g, r, r.IDs.Names[name], &priority) },
		}
		if known {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		if err := a.tag(ctx, pid, r.IDs.Names[name].Tag(), stickyLinks(r)); err != nil {
			return err
		}
		return a.raise(g, r, r.IDs.Names[name].ID, priority)
	})
}

// forget makes room: contracts of processes that are gone mean nothing any more.
func (a *Agent) forget(g *bpf.Generation, r *state.Record) error {
	a.prune(r)
	before := r.IDs
	r.IDs = r.IDs.Assign(liveNames(r))
	for name, c := range before.Names {
		if _, lives := r.IDs.Names[name]; lives {
			continue
		}
		if err := a.promise(g, r, c, nil); err != nil {
			return err
		}
	}
	return nil
}

// raise lets out what waits below a priority that was just given.
func (a *Agent) raise(g *bpf.Generation, r *state.Record, id plan.ContractID, p policy.Priority) error {
	for _, link := range sortedKeys(r.Links) {
		level := p.On(link)
		if level == policy.Unset {
			continue
		}
		l := r.Links[link]
		if err := a.release(g, l, id, l.Queue.Map[level]); err != nil {
			return err
		}
	}
	return nil
}

// Clear takes back what Set gave to a process and its children. A process that
// was given nothing is fine.
func (a *Agent) Clear(ctx context.Context, pid uint32) error {
	return a.locked(func(r *state.Record) error {
		g, err := a.current(r)
		if err != nil {
			return err
		}
		defer g.Close()
		name := setName(pid)
		c, ok := r.IDs.Names[name]
		if _, set := findSet(r, name); !set || !ok {
			return nil
		}
		if err := a.untag(ctx, c.Tag(), stickyLinks(r)); err != nil {
			return err
		}
		if err := a.promise(g, r, c, nil); err != nil {
			return err
		}
		removeSet(r, name)
		r.IDs = r.IDs.Assign(liveNames(r))
		return a.Scope.Save(r)
	})
}

// current opens the generation that counts.
func (a *Agent) current(r *state.Record) (*bpf.Generation, error) {
	switch {
	case r.Journal != nil:
		return nil, fmt.Errorf("%w at %q", ErrUnfinished, r.Journal.Text)
	case r.Generation == 0:
		return nil, ErrNothingApplied
	}
	return a.room().Open(r.Generation)
}

func setName(pid uint32) string { return fmt.Sprintf("pid %d", pid) }

func findSet(r *state.Record, name string) (state.Set, bool) {
	for _, s := range r.Sets {
		if s.Name == name {
			return s, true
		}
	}
	return state.Set{}, false
}

func removeSet(r *state.Record, name string) {
	for i, s := range r.Sets {
		if s.Name == name {
			r.Sets = append(r.Sets[:i:i], r.Sets[i+1:]...)
			return
		}
	}
}

// liveNames are the names that keep their contract: the policy's and the sets'.
// Names of sets that were pruned are not among them.
func liveNames(r *state.Record) []string {
	gone := map[string]bool{}
	for name := range r.IDs.Names {
		var pid uint32
		if n, _ := fmt.Sscanf(name, "pid %d", &pid); n == 1 {
			gone[name] = true
		}
	}
	for _, s := range r.Sets {
		gone[s.Name] = false
	}
	var names []string
	for name := range r.IDs.Names {
		if !gone[name] {
			names = append(names, name)
		}
	}
	return names
}

// promise writes what a contract means on every link; nil takes it back.
func (a *Agent) promise(g *bpf.Generation, r *state.Record, c plan.Contract, p *policy.Priority) error {
	for _, name := range sortedKeys(r.Links) {
		l := r.Links[name]
		promise := plan.Promise{Priority: plan.Keep}
		if p != nil {
			promise.Serial = c.Serial
			if level := p.On(name); level != policy.Unset {
				promise.Priority = l.Queue.Written(level)
			}
		}
		if err := g.SetPromise(l.Index, c.ID, promise); err != nil {
			return err
		}
	}
	return nil
}
