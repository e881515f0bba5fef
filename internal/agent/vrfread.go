package agent

import (
	"context"
	"errors"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
)

// VRFs reads the routing domains of a network namespace, by a path as /run/netns/NAME, or with
// "" of the scope's. It wraps host.ErrNoVRF where there is none because the kernel has none.
func (a *Agent) VRFs(ctx context.Context, netns string) (facts plan.VRFFacts, err error) {
	if netns == "" {
		netns = a.Scope.Netns
	}
	err = host.InNetns(netns, func() (err error) { facts, err = host.VRFs(ctx); return err })
	if err == nil && len(facts.VRFs) == 0 && errors.Is(host.VRFPossible(), host.ErrNoVRF) {
		err = host.ErrNoVRF
	}
	return facts, err
}
