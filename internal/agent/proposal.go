package agent

import (
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// A Proposal is what an apply is about to do.
type Proposal struct {
	Basis       string            // as Basis names it
	Differences []plan.Difference // what changes; none if everything is so already
	Moves       []string          // links that change their routing domain, or what is declared there
	CutsOff     string            // a link that may lose its default route, if none keeps one
}

// accepted asks the caller whether a draft may be carried out.
func (a *Agent) accepted(r *state.Record, d *draft) error {
	if a.Accept == nil {
		return nil
	}
	basis, err := basisOf(r)
	if err != nil {
		return err
	}
	return a.Accept(Proposal{basis, d.differences, plan.Touched(d.have, d.want), plan.CutOff(d.have, d.want, d.facts)})
}
