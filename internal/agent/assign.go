package agent

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/weir-net/weir/internal/kernel/netprio"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// assign moves every process that a net_prio workload matches now, or that was
// set, into its group, and puts back those that were moved for what is gone.
// Processes that start later are reached through their parents only.
func (c *change) assign(ctx context.Context, p *policy.Policy, f plan.Facts) error {
	groups, err := c.carried(ctx, p, f)
	if err != nil {
		return err
	}
	s, err := c.tree().Read()
	if err != nil {
		return err
	}
	for pid := range s.Moved {
		if groups[pid] == "" {
			err = errors.Join(err, c.putBack(ctx, pid, groups))
		}
	}
	for pid, group := range groups {
		if moved := c.tree().Assign(pid, group); !errors.Is(moved, netprio.ErrGone) {
			err = errors.Join(err, moved)
		}
	}
	return err
}

// putBack puts a process and the children that inherited its group back where it
// was. The children go first: through it they are known to have inherited.
func (c *change) putBack(ctx context.Context, pid uint32, groups map[uint32]string) error {
	tree, err := workload.ProcessTree(ctx, pid)
	if errors.Is(err, workload.ErrGone) {
		return nil
	}
	for i := len(tree) - 1; i >= 0; i-- {
		if groups[tree[i].PID] == "" {
			err = errors.Join(err, c.tree().Clear(tree[i].PID))
		}
	}
	return err
}

// carried are the processes that net_prio carries now, with their groups: those
// that were set, and of the policy's workloads the first that matches.
func (c *change) carried(ctx context.Context, p *policy.Policy, f plan.Facts) (map[uint32]string, error) {
	groups := map[uint32]string{}
	for _, s := range netPrioSets(c.record.Sets) {
		if lives(s.Process()) {
			groups[s.PID] = groupOf(groupName(s.PID), s.Priority)
		}
	}
	var workloads []policy.Workload
	for _, w := range p.Workloads {
		if w.Via == policy.ViaNetPrio {
			workloads = append(workloads, w)
		}
	}
	if workloads == nil {
		return groups, nil
	}
	all, err := workload.Processes(ctx)
	if err != nil {
		return nil, err
	}
	for _, process := range all {
		for _, w := range workloads {
			if groups[process.PID] == "" && matches(w, process, f) {
				groups[process.PID] = groupOf(w.Name, w.Contract.Priority)
			}
		}
	}
	return groups, nil
}

// matches reports whether a selector of a workload fits a process.
func matches(w policy.Workload, p workload.Process, f plan.Facts) bool {
	for _, s := range w.Match {
		fits := false
		switch s.Kind {
		case policy.KindPID:
			fits = s.PID == p.PID
		case policy.KindUser:
			uid, known := f.Users[s.User]
			fits = known && uid == p.UID
		case policy.KindExe:
			exe, known := f.Exes[s.Exe]
			fits = known && exe == p.Exe.ID
		case policy.KindCgroup, policy.KindUnit:
			path := p.Cgroup2
			if s.Cgroup.Controller != "" {
				path = p.Cgroup1[s.Cgroup.Controller]
			}
			fits = claims(s.Cgroup, path)
		}
		if fits {
			return true
		}
	}
	return false
}

// claims reports whether a cgroup or one of its ancestors matches a pattern.
func claims(c policy.Cgroup, path string) bool {
	for ; filepath.IsAbs(path); path = filepath.Dir(path) {
		if c.Match(path) {
			return true
		}
		if path == "/" {
			break
		}
	}
	return false
}
