package agent

import (
	"context"
	"maps"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// facts gathers what a policy needs to know of this host. What could not be
// looked at comes back in words.
func (a *Agent) facts(ctx context.Context, p *policy.Policy) (f plan.Facts, skipped []string, err error) {
	err = a.inScope(func() error {
		if f.Root, err = privileged(); err != nil {
			return err
		}
		if f.Links, err = host.Links(ctx); err != nil {
			return err
		}
		if skipped, err = workload.Facts(ctx, p, &f); err != nil {
			return err
		}
		if f.Features = a.features(ctx); plan.AsksForIfb(p, f) {
			probeIfb(&f.Features)
		}
		if err := a.lookAtVRFs(p, &f); err != nil {
			return err
		}
		f.KmemTCP = kmemTCP(f)
		f.Parents1, err = parents1(ctx, p, f)
		return err
	})
	return f, skipped, err
}

// HostFacts is what the host has and can do, whatever a policy says, found out
// by trying now. Without privileges the features are unknown, each with why.
func (a *Agent) HostFacts(ctx context.Context) (f plan.Facts, err error) {
	err = a.inScope(func() error {
		if f.Root, err = privileged(); err != nil {
			return err
		}
		if f.Links, err = host.Links(ctx); err != nil {
			return err
		}
		hierarchies, err := workload.FindHierarchies()
		if err != nil {
			return err
		}
		f.Cgroup2, f.Cgroup1 = hierarchies.V2, maps.Clone(hierarchies.V1)
		f.Features = probe(ctx)
		probeIfb(&f.Features)
		probeVRF(&f.Features)
		return nil
	})
	return f, err
}

func privileged() (bool, error) {
	missing, err := host.MissingCapabilities()
	return len(missing) == 0, err
}
