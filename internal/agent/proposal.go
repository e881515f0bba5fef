package agent

import (
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// A Proposal is what an apply is about to do.
type Proposal struct {
	Basis       string            // as Basis names it
	Differences []plan.Difference // what changes; none if everything is so already
	Moves       []string          // links that change their routing domain
	CutsOff     string            // one of them, if none is left by which a default route goes that does not
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
	moves := plan.Moves(d.have, d.want)
	return a.Accept(Proposal{basis, d.differences, moves, plan.CutOff(moves, d.facts)})
}
