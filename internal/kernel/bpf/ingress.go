package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
)

// loadIngress loads link_ingress for a link with a limit of what arrives by it; nil
// for all others.
func (g *Generation) loadIngress(index int, l plan.LinkRules) (*ebpf.Program, error) {
	own, err := g.ownBudgets(plan.OwnIngress, index, l.Ingress)
	if err != nil || own == 0 {
		return nil, err
	}
	spec, err := copied(parseIngress)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		spec.Variables[linkIngressVarOwnBudgets].Set(own),
		spec.Variables[linkIngressVarL2Length].Set(uint32(l.L2)),
	)
	if err != nil {
		return nil, fmt.Errorf("set link_ingress: %w", err)
	}
	var programs linkIngressPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return nil, fmt.Errorf("load link_ingress: %w", err)
	}
	return programs.LinkIngress, nil
}

// AttachIngress puts link_ingress on a link by tcx, first among the programs there:
// what they redirect has come by the link as well. An older one is replaced in one
// step. It acts in the calling thread's network namespace.
func (g *Generation) AttachIngress(index int) error {
	return attachTCX(g.room.ingressPin(index), index, g.links[index].ingress, ebpf.AttachTCXIngress, link.Head())
}

// IngressProgram is Program of link_ingress.
func (g *Generation) IngressProgram(index int) int { return g.links[index].ingress.FD() }

// IngressID is the kernel's id of the generation's link_ingress for a link, 0 if it
// has none.
func (g *Generation) IngressID(index int) (uint32, error) {
	t, err := g.openLink(index)
	if err != nil || t.ingress == nil {
		return 0, err
	}
	return programID(t.ingress)
}

// OwnLimits reads back what all packets together may take that leave by a link, and
// that arrive by it.
func (g *Generation) OwnLimits(index int) (egress, ingress plan.Limit, err error) {
	limits, err := g.charged()
	if err != nil {
		return egress, ingress, err
	}
	egress = limits.limitOf(plan.Owner{Contract: plan.OwnEgress, Link: index})
	ingress = limits.limitOf(plan.Owner{Contract: plan.OwnIngress, Link: index})
	return egress, ingress, nil
}
