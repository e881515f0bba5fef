package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
)

// loadIngress loads link_ingress for a link with a limit of what arrives by it; nil
// for all others. It knows whose a packet is as the link's egress does.
func (g *Generation) loadIngress(number linkEgressLinkNumber, index int, rules plan.Rules, l plan.LinkRules, contracts *ebpf.Map) (*ebpf.Program, error) {
	own, err := g.ownBudgets(plan.OwnIngress, index, l.Ingress)
	if err != nil || own == 0 {
		return nil, err
	}
	weights := false
	for of := range rules.Blocs {
		weights = weights || of.Contract == plan.OwnIngress && of.Link == index
	}
	load := func(mptcp bool) (*ebpf.Program, error) {
		spec, err := copied(parseIngress)
		if err != nil {
			return nil, err
		}
		err = errors.Join(
			spec.Variables[linkIngressVarGeneration].Set(g.Number),
			spec.Variables[linkIngressVarThisLink].Set(number),
			spec.Variables[linkIngressVarTupleCount].Set(uint32(len(rules.Tuples))),
			spec.Variables[linkIngressVarDscpMatters].Set(dscpMatters(rules.Tuples)),
			spec.Variables[linkIngressVarL2Length].Set(uint32(l.L2)),
			spec.Variables[linkIngressVarLimits].Set(true),
			spec.Variables[linkIngressVarKnowsMptcp].Set(mptcp),
			spec.Variables[linkIngressVarOwnBudgets].Set(own),
			spec.Variables[linkIngressVarWeights].Set(weights),
		)
		if err != nil {
			return nil, fmt.Errorf("set link_ingress: %w", err)
		}
		spec.Maps[linkIngressMapContracts].MaxEntries = contracts.MaxEntries()
		o := g.shared(spec)
		o.MapReplacements[linkIngressMapContracts] = contracts
		var programs linkIngressPrograms
		if err := spec.LoadAndAssign(&programs, o); err != nil {
			return nil, fmt.Errorf("load link_ingress: %w", err)
		}
		return programs.LinkIngress, nil
	}
	if weights && features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkcToMptcpSock) == nil {
		if p, err := load(true); err == nil {
			return p, nil
		}
	}
	return load(false)
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
