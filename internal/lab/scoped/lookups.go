package scoped

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

// MendLookups finds out what keeps names from being looked up in a VRF, and has them looked up
// by servers that answer there, as weir vrf doctor --fix does.
func (c *Controller) MendLookups(ctx context.Context, root, vrf string) (cause string, servers []netip.Addr, err error) {
	r := agent.Resolver{Root: root}
	facts, err := c.agent.VRFs(ctx, "")
	if err != nil {
		return "", nil, err
	}
	v, ok := facts.VRF(vrf)
	if !ok {
		return "", nil, fmt.Errorf("VRF %s: %w", vrf, agent.ErrUnknownVRF)
	}
	lookups, err := c.agent.VRFLookups(ctx, r, "", []plan.VRFDevice{v})
	if err != nil {
		return "", nil, err
	}
	for _, f := range plan.VRFDoctor(facts, lookups, vrf) {
		if f.ID == vrf+"/dns" && f.State != plan.FindingOK {
			servers, err = c.agent.FixLookups(r, "", vrf, nil)
			return f.Text, servers, err
		}
	}
	return "", nil, nil
}

// UnmendLookups takes back what MendLookups did.
func (c *Controller) UnmendLookups(root, vrf string) error {
	_, err := agent.Resolver{Root: root}.UndoLookups(vrf)
	return err
}
