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

// members are the processes that need a tag, with the name of its contract:
// those that the policy names and, before them, those that were set and run.
func members(w *plan.Want, sets []state.Set) map[uint32]string {
	all := maps.Clone(w.PIDs)
	for _, s := range sets {
		if s.Selector == nil && s.Via == policy.ViaBPF && lives(s.Process()) {
			all[s.PID] = s.Name
		}
	}
	return all
}

// mistagged tells of processes that lack the tag of a contract which is in
// force, or kept it though the policy names them no more: no table shows that.
func mistagged(r *state.Record, w *plan.Want, have plan.State, tags map[uint32]uint32) []plan.Difference {
	all := members(w, r.Sets)
	var found []plan.Difference
	report := func(name, format string, pid uint32) {
		if have.Contracts[name] == w.Contracts[name] { // else all of it is a difference
			found = append(found, plan.Difference{Op: plan.Change, Object: "workload " + name, Detail: fmt.Sprintf(format, pid)})
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		if name := all[pid]; tags[pid] != w.Contracts[name].Tag() && runs(pid) {
			report(name, "process %d belongs to it", pid)
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(r.Tagged)) {
		name := r.Tagged[pid]
		if c, wanted := w.Contracts[name]; wanted && all[pid] == "" && tags[pid] == c.Tag() {
			report(name, "process %d belongs to it no more", pid)
		}
	}
	return found
}

// runs reports whether there is a process of that number: one that ends takes
// its tag with it.
func runs(pid uint32) bool {
	p, err := workload.ReadProcess(pid)
	return err == nil && !p.Zombie
}

// tagMembers gives all members their tags, and takes those away whose contract
// is gone or whose process is no member any more.
func (c *change) tagMembers(ctx context.Context, s *bpf.Sockets, w *plan.Want) error {
	tags, err := s.Tasks()
	if err != nil {
		return err
	}
	alive := map[uint32]bool{}
	for _, contract := range w.Contracts {
		alive[contract.Tag()] = true
	}
	for pid, tag := range tags {
		if !alive[tag] {
			err = errors.Join(err, s.UntagTask(pid))
		}
	}
	all := members(w, c.record.Sets)
	for pid, name := range c.record.Tagged {
		if contract, wanted := w.Contracts[name]; wanted && all[pid] != name {
			err = errors.Join(err, c.dismiss(ctx, s, pid, contract.Tag(), tags))
		}
	}
	// On file before it is so: who has a tag must be known to lose it again.
	c.record.Tagged = w.PIDs
	err = errors.Join(err, c.save())
	for pid, name := range all {
		_, more := tagTree(ctx, s, pid, w.Contracts[name].Tag())
		err = errors.Join(err, more)
	}
	return err
}

// dismiss takes a tag away from a process and those of its descendants that have
// it, and from their sockets.
func (c *change) dismiss(ctx context.Context, s *bpf.Sockets, pid, tag uint32, tags map[uint32]uint32) error {
	tree, err := workload.ProcessTree(ctx, pid)
	if errors.Is(err, workload.ErrGone) {
		return nil
	}
	for _, p := range tree {
		if tags[p.PID] == tag {
			err = errors.Join(err, s.UntagTask(p.PID))
		}
		err = errors.Join(err, strip(s, p.PID, tag, picksQueues(c.record)))
	}
	return err
}
