package agent

import (
	"context"
	"maps"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// HostFacts is what the host has and can do, whatever a policy says, found out
// by trying now. Without privileges the features are unknown, each with why.
func (a *Agent) HostFacts(ctx context.Context) (f plan.Facts, err error) {
	err = a.inScope(func() error {
		if f.Links, err = host.Links(ctx); err != nil {
			return err
		}
		hierarchies, err := workload.FindHierarchies()
		if err != nil {
			return err
		}
		missing, err := host.MissingCapabilities()
		if err != nil {
			return err
		}
		f.Root, f.Features = len(missing) == 0, a.Probe(ctx)
		f.Cgroup2, f.Cgroup1 = hierarchies.V2, maps.Clone(hierarchies.V1)
		return nil
	})
	return f, err
}
