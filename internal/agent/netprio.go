package agent

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/weir-net/weir/internal/kernel/netprio"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// tree is the scope's part of the net_prio hierarchy: the whole of it for the
// host, as in the recipe that people follow by hand, and a group that no other
// scope has for the others.
func (a *Agent) tree() netprio.Tree {
	t := netprio.Tree{Base: "/", RunDir: a.Scope.Run}
	if a.Scope.Pins != state.HostPins {
		t.Base = "/weir" + strings.ReplaceAll(filepath.Clean(a.Scope.Run), "/", "-")
	}
	return t
}

// groupOf names the net_prio group that carries a priority: one of the sixteen
// where it is the same everywhere, else one of its own.
func groupOf(name string, p policy.Priority) string {
	if len(p.PerLink) == 0 {
		return netprio.LevelGroup(p.Default)
	}
	return netprio.NamedGroup(name)
}

func priorityOf(g plan.Group) policy.Priority {
	return policy.Priority{Default: g.Default, PerLink: g.PerLink}
}

// netPrioGroups are all groups that have to exist beside the sixteen.
func netPrioGroups(groups map[string]plan.Group, sets []state.Set) map[string]policy.Priority {
	extra := map[string]policy.Priority{}
	add := func(name string, p policy.Priority) {
		if len(p.PerLink) > 0 {
			extra[groupOf(name, p)] = p
		}
	}
	for name, g := range groups {
		add(name, priorityOf(g))
	}
	for _, s := range netPrioSets(sets) {
		add(groupName(s.PID), s.Priority)
	}
	return extra
}

// usesNetPrio reports whether anything is carried by net_prio.
func usesNetPrio(groups map[string]plan.Group, sets []state.Set) bool {
	return len(groups) > 0 || len(netPrioSets(sets)) > 0
}

// addNetPrio adds the steps that carry a policy's net_prio workloads, and what
// was set beside it.
func (c *change) addNetPrio(ctx context.Context, d *draft) {
	if !usesNetPrio(d.want.Groups, c.record.Sets) {
		c.removeNetPrio()
		return
	}
	c.add("make the net_prio groups", func() error {
		c.record.Groups = d.want.Groups
		if err := c.save(); err != nil {
			return err
		}
		return c.tree().Apply(netPrioGroups(d.want.Groups, c.record.Sets))
	})
	c.add("move processes into their net_prio groups", func() error { return c.assign(ctx, d.policy, d.facts) })
	c.add("watch for new interfaces", c.watchLinks)
}

// removeNetPrio adds the step that leaves net_prio as it was before, if there is
// anything of ours in it. Its own memory knows that: a record may have forgotten
// a set whose process has ended.
func (c *change) removeNetPrio() {
	if s, err := c.tree().Read(); err == nil && len(s.Want) == 0 {
		return
	}
	c.add("put processes back and remove the net_prio groups", func() error {
		if err := c.tree().Remove(); err != nil {
			return err
		}
		c.record.Groups = nil
		return c.save()
	})
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
		if wrong[groupOf(name, priorityOf(g))] || s.Mount == "" {
			continue // as good as not there
		}
		have.Groups[name] = g
	}
	return nil
}
