package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// Reset leaves the host as it was before Weir: programs, tables and queues go,
// what was replaced comes back. Without anything of Weir's it does nothing.
func (a *Agent) Reset(ctx context.Context) error {
	return a.locked(func(r *state.Record) error {
		if r.Journal == nil {
			r.Previous = r.Applied
		}
		r.Pending, r.Rollback = nil, nil // taken back with all the rest
		return a.reset(ctx, "reset", r)
	})
}

func (a *Agent) reset(ctx context.Context, verb string, r *state.Record) error {
	c := &change{Agent: a, verb: verb, record: r}
	links, waiting := maps.Clone(r.Links), r.Waiting
	for _, name := range sortedKeys(r.Links) {
		c.removeLink(name)
	}
	c.addLift(ctx, pacing)
	c.endReceive(ctx)
	c.endWaiting()
	c.endMemory(ctx)
	c.removeMemcg()
	if verb == "reset" { // an experiment is no part of the policy that is taken back
		for _, name := range sortedKeys(r.Steered) {
			c.removeSteering(name)
		}
	}
	// net_prio needs no policy: what was set by it before a change is there after
	// the change was taken back.
	var kept []state.Set
	if verb != "reset" {
		kept = netPrioSets(r.Sets)
	}
	if len(kept) > 0 {
		c.addNetPrio(ctx, &draft{policy: &policy.Policy{}, want: &plan.Want{}})
	} else {
		c.removeNetPrio()
	}
	c.add("remove programs and tables", func() error {
		r.Generation, r.Applied, r.Previous, r.Tagged, r.Sets = 0, nil, nil, nil, kept
		if err := c.save(); err != nil {
			return err
		}
		return a.room().Remove()
	})
	c.removeVRFs(ctx)
	if r.BPFFS {
		c.add("unmount the BPF file system", func() error {
			err := host.UnmountBPFFS(bpffs(a.Scope.Pins))
			if err != nil && !errors.Is(err, host.ErrBPFFSInUse) { // then others have come to rely on it
				return err
			}
			r.BPFFS = false
			return c.save()
		})
	}
	c.add("look whether anything is left", func() error { return a.proveReset(links, waiting) })
	c.add("forget", func() error {
		// Tags went with the programs' memory, so numbers and serials may start anew.
		r.IDs, r.Offload = plan.IDs{}, nil
		if len(kept) == 0 {
			r.Watcher = nil // it ends by itself
		}
		a.forgetPolicy()
		return c.save()
	})
	if err := c.run(ctx); err != nil {
		return err
	}
	return c.end()
}

// proveReset looks whether anything of ours is left where it was.
func (a *Agent) proveReset(links map[string]state.LinkRecord, waiting bool) error {
	return a.inScope(func() error {
		if at, back, err := tc.FindWaiting(); waiting && (err != nil || at != 0 || back != 0) {
			return cmp.Or(err, fmt.Errorf("%w: %s or %s is still there", ErrNotProved, tc.WaitingDevice, tc.BackDevice))
		}
		for _, name := range sortedKeys(links) {
			q, err := tc.Read(links[name].Index)
			if err == nil && q.Root.Handle>>16 == plan.RootHandle {
				return fmt.Errorf("%w: link %s still has our %s", ErrNotProved, name, q.Root.Kind)
			}
			if err := ignoreGone(err); err != nil {
				return err
			}
		}
		return nil
	})
}
