package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/weir-net/weir/internal/kernel/netprio"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// Watcher is the argument with which Detach starts the process that gives new
// interfaces their net_prio entries: it calls WatchLinks.
const Watcher = "watch-links"

// tree is the scope's part of the net_prio hierarchy: the whole of it for the
// host, as in the recipe that people follow by hand.
func (a *Agent) tree() netprio.Tree {
	t := netprio.Tree{Base: "/", RunDir: a.Scope.Run}
	if a.Scope.Pins != state.HostPins {
		t.Base = "/" + filepath.Base(a.Scope.Run)
	}
	return t
}

// WatchLinks gives interfaces that appear later their net_prio entries, until
// the groups are removed or ctx ends.
func (a *Agent) WatchLinks(ctx context.Context) error { return a.tree().Watch(ctx, nil) }

// groupOf names the net_prio group that carries a priority: one of the sixteen
// where it is the same everywhere, else one of its own.
func groupOf(name string, p policy.Priority) string {
	if len(p.PerLink) == 0 {
		return netprio.LevelGroup(p.Default)
	}
	return netprio.NamedGroup(name)
}

// netPrioGroups are all groups that have to exist beside the sixteen.
func netPrioGroups(groups map[string]plan.Group, sets []state.Set) map[string]policy.Priority {
	extra := map[string]policy.Priority{}
	for name, g := range groups {
		if p := (policy.Priority{Default: g.Default, PerLink: g.PerLink}); len(p.PerLink) > 0 {
			extra[groupOf(name, p)] = p
		}
	}
	for _, s := range sets {
		if s.Via == policy.ViaNetPrio && len(s.Priority.PerLink) > 0 {
			extra[groupOf(groupName(s.PID), s.Priority)] = s.Priority
		}
	}
	return extra
}

func groupName(pid uint32) string { return fmt.Sprintf("pid-%d", pid) }

// usesNetPrio reports whether anything is carried by net_prio.
func usesNetPrio(groups map[string]plan.Group, sets []state.Set) bool {
	for _, s := range sets {
		if s.Via == policy.ViaNetPrio {
			return true
		}
	}
	return len(groups) > 0
}

// addNetPrio adds the steps that carry the policy's net_prio workloads.
func (c *change) addNetPrio(ctx context.Context, p *policy.Policy, w *plan.Want) {
	if usesNetPrio(w.Groups, c.record.Sets) {
		c.add("make the net_prio groups", func() error {
			c.record.Groups = w.Groups
			if err := c.save(); err != nil {
				return err
			}
			return c.tree().Apply(netPrioGroups(w.Groups, c.record.Sets))
		})
		c.add("move processes into their net_prio groups", func() error { return c.assign(ctx, p) })
		c.add("watch for new interfaces", c.watchLinks)
		return
	}
	if len(c.record.Groups) > 0 {
		c.removeNetPrio()
	}
}

// removeNetPrio adds the step that leaves net_prio as it was before.
func (c *change) removeNetPrio() {
	c.add("put processes back and remove the net_prio groups", func() error {
		c.record.Groups = nil
		if err := c.save(); err != nil {
			return err
		}
		return c.tree().Remove()
	})
}

// watchLinks starts the watcher, unless one runs.
func (c *change) watchLinks() error {
	if c.Detach == nil || c.watches() {
		return nil
	}
	pid, err := c.Detach(Watcher)
	if err != nil {
		return fmt.Errorf("start the watcher of interfaces: %w", err)
	}
	p, err := workload.ReadProcess(uint32(pid))
	if err != nil {
		return fmt.Errorf("start the watcher of interfaces: %w", err)
	}
	c.record.Watcher = &state.Process{PID: p.PID, Start: p.Start}
	return c.save()
}

func (c *change) watches() bool {
	w := c.record.Watcher
	return w != nil && lives(state.Set{PID: w.PID, Start: w.Start})
}

// assign moves every process that a net_prio workload matches now. Processes
// that start later are reached through their parents only.
func (c *change) assign(ctx context.Context, p *policy.Policy) error {
	var carried []policy.Workload
	for _, w := range p.Workloads {
		if w.Via == policy.ViaNetPrio {
			carried = append(carried, w)
		}
	}
	if carried == nil {
		return nil
	}
	all, err := workload.Processes(ctx)
	if err != nil {
		return err
	}
	for _, process := range all {
		for _, w := range carried {
			if !matches(w, process) {
				continue
			}
			err := c.tree().Assign(process.PID, groupOf(w.Name, w.Contract.Priority))
			if err != nil && !errors.Is(err, netprio.ErrGone) {
				return err
			}
			break // the first workload has it
		}
	}
	return nil
}

// matches reports whether a process-side selector of a workload fits a process.
func matches(w policy.Workload, p workload.Process) bool {
	for _, s := range w.Match {
		switch s.Kind {
		case policy.KindPID:
			if s.PID == p.PID {
				return true
			}
		case policy.KindUser:
			if uid, ok := workload.UserID(s.User); ok && uid == p.UID {
				return true
			}
		case policy.KindExe:
			if s.Exe == p.Exe.Path {
				return true
			}
		case policy.KindCgroup, policy.KindUnit:
			path := p.Cgroup2
			if s.Cgroup.Controller != "" {
				path = p.Cgroup1[s.Cgroup.Controller]
			}
			if within(s.Cgroup, path) {
				return true
			}
		}
	}
	return false
}

// within reports whether a cgroup or one of its ancestors matches a pattern.
func within(c policy.Cgroup, path string) bool {
	for ; path != "/" && path != "." && path != ""; path = filepath.Dir(path) {
		if c.Match(path) {
			return true
		}
	}
	return false
}

// readNetPrio says which groups are as they were made.
func (a *Agent) readNetPrio(r *state.Record, have *plan.State) error {
	if len(r.Groups) == 0 {
		return nil
	}
	s, err := a.tree().Read()
	if err != nil {
		return err
	}
	wrong := map[string]bool{}
	for _, d := range s.Drift() {
		wrong[d.Group] = true
	}
	for name, g := range r.Groups {
		if wrong[groupOf(name, policy.Priority{Default: g.Default, PerLink: g.PerLink})] || s.Mount == "" {
			continue // as good as not there
		}
		have.Groups[name] = g
	}
	return nil
}

// SetNetPrio gives a running process a priority by moving it in the net_prio
// hierarchy. It needs no policy and no BPF.
func (a *Agent) SetNetPrio(ctx context.Context, pid uint32, p policy.Priority) error {
	return a.locked(func(r *state.Record) error {
		process, err := workload.ReadProcess(pid)
		if err != nil {
			return err
		}
		name := setName(pid) + " net_prio"
		removeSet(r, name)
		r.Sets = append(r.Sets, state.Set{Name: name, PID: pid, Start: process.Start, Priority: p, Via: policy.ViaNetPrio})
		c := &change{Agent: a, record: r}
		if err := c.save(); err != nil {
			return err
		}
		if err := a.tree().Apply(netPrioGroups(r.Groups, r.Sets)); err != nil {
			return err
		}
		if err := a.tree().Assign(pid, groupOf(groupName(pid), p)); err != nil {
			return err
		}
		return c.watchLinks()
	})
}

// ClearNetPrio puts a process back where it was in the net_prio hierarchy.
func (a *Agent) ClearNetPrio(pid uint32) error {
	return a.locked(func(r *state.Record) error {
		name := setName(pid) + " net_prio"
		if _, ok := findSet(r, name); !ok {
			return nil
		}
		if err := a.tree().Clear(pid); err != nil {
			return err
		}
		removeSet(r, name)
		if !usesNetPrio(r.Groups, r.Sets) {
			if err := a.tree().Remove(); err != nil {
				return err
			}
		}
		return a.Scope.Save(r)
	})
}
