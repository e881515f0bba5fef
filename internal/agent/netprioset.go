package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// SetNetPrio gives a running process a priority by moving it in the net_prio
// hierarchy. It needs no policy and no BPF. On an error all is as before.
func (a *Agent) SetNetPrio(ctx context.Context, pid uint32, p policy.Priority) error {
	return a.locked(func(r *state.Record) error {
		process, err := workload.ReadProcess(pid)
		if err != nil {
			return err
		}
		before := slices.Clone(r.Sets)
		gone, err := a.gone(netPrioSets(r.Sets), nil, r.IDs)
		if err != nil {
			return err
		}
		r.Sets = slices.DeleteFunc(r.Sets, func(s state.Set) bool { return gone[s.Name] })
		set := state.Set{Name: netPrioName(pid), PID: pid, Start: process.Start, Priority: p, Via: policy.ViaNetPrio}
		removeSet(r, set.Name)
		r.Sets = append(r.Sets, set)
		c := &change{Agent: a, record: r}
		if err := c.carry(set); err != nil {
			r.Sets = before
			return errors.Join(err, c.uncarry())
		}
		return nil
	})
}

// carry moves a process that was set. It is remembered first.
func (c *change) carry(s state.Set) error {
	if err := c.save(); err != nil {
		return err
	}
	if err := c.tree().Apply(netPrioGroups(c.record.Groups, c.record.Sets)); err != nil {
		return err
	}
	if err := c.tree().Assign(s.PID, groupOf(groupName(s.PID), s.Priority)); err != nil {
		return err
	}
	return c.watchLinks()
}

// uncarry makes the groups those that are needed, and forgets the others.
func (c *change) uncarry() error {
	if usesNetPrio(c.record.Groups, c.record.Sets) {
		return errors.Join(c.tree().Apply(netPrioGroups(c.record.Groups, c.record.Sets)), c.save())
	}
	return errors.Join(c.tree().Remove(), c.save())
}

// ClearNetPrio puts a process back where it was in the net_prio hierarchy. One
// that was given nothing is fine.
func (a *Agent) ClearNetPrio(pid uint32) error {
	return a.locked(func(r *state.Record) error {
		if _, ok := findSet(r, netPrioName(pid)); !ok {
			return nil
		}
		if err := a.tree().Clear(pid); err != nil {
			return err
		}
		removeSet(r, netPrioName(pid))
		return (&change{Agent: a, record: r}).uncarry()
	})
}

// netPrioSets are the sets that net_prio carries.
func netPrioSets(sets []state.Set) []state.Set {
	return slices.DeleteFunc(slices.Clone(sets), func(s state.Set) bool { return s.Via != policy.ViaNetPrio })
}

func netPrioName(pid uint32) string { return setName(pid) + " net_prio" }

func groupName(pid uint32) string { return fmt.Sprintf("pid-%d", pid) }
