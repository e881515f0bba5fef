package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// Reset leaves the host as it was before Weir: programs, tables and queues go,
// what was replaced comes back. Without anything of Weir's it does nothing.
func (a *Agent) Reset(ctx context.Context) error {
	return a.locked(func(r *state.Record) error { return a.reset(ctx, "reset", r) })
}

func (a *Agent) reset(ctx context.Context, verb string, r *state.Record) error {
	c := &change{Agent: a, record: r}
	links, sets := maps.Clone(r.Links), r.Sets
	for _, name := range sortedKeys(r.Links) {
		c.removeLink(name)
	}
	c.add("remove programs and tables", func() error {
		r.Generation, r.Applied, r.Previous, r.Sets = 0, nil, nil, nil
		if err := c.save(); err != nil {
			return err
		}
		return a.room().Remove()
	})
	if usesNetPrio(r.Groups, sets) {
		c.removeNetPrio()
	}
	if r.BPFFS {
		c.add("unmount the BPF file system", func() error {
			r.BPFFS = false
			err := host.UnmountBPFFS(bpffs(a.Scope.Pins))
			if errors.Is(err, host.ErrBPFFSInUse) {
				return nil // others have come to rely on it
			}
			return err
		})
	}
	if err := c.run(ctx, verb, nil); err != nil {
		return err
	}
	if err := a.proveReset(links); err != nil {
		return err
	}
	// Tags went with the programs' memory, so numbers and serials may start anew.
	r.IDs = plan.IDs{}
	if r.Rollback != nil {
		return a.Scope.Save(r)
	}
	a.forgetPolicy()
	return a.Scope.Forget()
}

// proveReset looks whether anything of ours is left where it was.
func (a *Agent) proveReset(links map[string]state.LinkRecord) error {
	for _, name := range sortedKeys(links) {
		err := a.inScope(func() error {
			q, err := tc.Read(links[name].Index)
			if err == nil && q.Root.Handle>>16 == plan.RootHandle {
				return fmt.Errorf("%w: link %s still has our %s", ErrNotProved, name, q.Root.Kind)
			}
			return ignoreGone(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
