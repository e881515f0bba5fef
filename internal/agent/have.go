package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// read asks the kernel what it holds for this scope. The record lends the names
// of contracts and links; all else is read back.
func (a *Agent) read(r *state.Record) (plan.State, error) {
	have := plan.State{Links: map[string]plan.LinkState{}, Contracts: r.IDs.Names, Groups: map[string]plan.Group{}}
	if err := a.readNetPrio(r, &have); err != nil {
		return have, err
	}
	var err error
	if have.VRFs, err = a.readVRFs(); err != nil {
		return have, err
	}
	if r.Generation == 0 {
		have.Contracts = nil
		return have, nil
	}
	g, err := a.open(r)
	if errors.Is(err, bpf.ErrAbsent) {
		// Somebody took the pins away: nothing of ours counts any more.
		return have, nil
	}
	if err != nil {
		return have, err
	}
	defer g.Close()
	if r.Waiting {
		if have.Waiting, err = a.readWaiting(); err != nil {
			return have, err
		}
	}
	if have.Rules, err = g.Rules(); err != nil {
		return have, err
	}
	if have.Memcg, _, err = a.readMemcg(r); err != nil {
		return have, err
	}
	if have.Bound, err = a.readBound(g); err != nil {
		return have, err
	}
	limited, err := g.HasLimits()
	if err != nil {
		return have, err
	}
	owners := a.room().SocketsAttached()
	have.Binds = len(have.Bound) > 0 && owners
	sockets := owners && (!limited || a.room().PaceAttached())
	if have.Receives, err = g.Receives(); err != nil {
		return have, err
	}
	if window := a.room().WindowAttached(); len(have.Rules.Arriving) > 0 {
		have.Receives = have.Receives && window && owners
	} else {
		have.Receives = (have.Receives || window) && owners
	}
	holds, err := g.HoldsMemory()
	if err != nil {
		return have, err
	}
	have.Holds = holds && owners
	for name, l := range r.Links {
		s, err := a.readLink(g, l)
		if err != nil {
			return have, fmt.Errorf("link %s: %w", name, err)
		}
		s.Attached, s.Ingress = s.Attached && sockets, s.Ingress && sockets
		have.Links[name] = s
	}
	return have, nil
}

// readLink asks for one link. A device that is gone has drifted.
func (a *Agent) readLink(g *bpf.Generation, l state.LinkRecord) (plan.LinkState, error) {
	s := plan.LinkState{Index: l.Index}
	err := a.inScope(func() error {
		q, err := tc.Read(l.Index)
		if errors.Is(err, tc.ErrNoLink) {
			s.Drift = "the device is gone"
			return nil
		}
		if err != nil {
			return err
		}
		s.Queue, s.Root, s.Drift = q.Queue, q.Root, strings.Join(q.Drift, "; ")
		if s.Policed, err = readPoliced(l.Index); err != nil {
			return err
		}
		if s.Detour, err = tc.ReadDetour(l.Index); err != nil {
			return err
		}
		want, err := g.ProgramID(l.Index)
		if errors.Is(err, bpf.ErrAbsent) {
			return nil // not attached, then
		}
		if err != nil {
			return err
		}
		s.Attached = want != 0 && want == a.attachedID(l)
		if want, err = g.IngressID(l.Index); err != nil {
			return err
		}
		runs, err := a.ingressID(l)
		if err != nil {
			return err
		}
		s.Ingress = runs != 0 && (runs == want || want == 0) // without a limit it is one too many
		s.Rules, err = readRules(g, l)
		return err
	})
	return s, err
}

// readRules asks a generation what contracts mean on a link.
func readRules(g *bpf.Generation, l state.LinkRecord) (plan.LinkRules, error) {
	r := plan.LinkRules{L2: l.L2, BucketMask: l.Queue.BucketMask(), NoQueue: l.Queue.Absent()}
	var err error
	if r.Contracts, err = g.Promises(l.Index); err != nil {
		return r, err
	}
	r.Egress, r.Ingress, err = g.OwnLimits(l.Index)
	return r, err
}

// attachedID returns the id of our program that runs at the egress of a link.
func (a *Agent) attachedID(l state.LinkRecord) uint32 {
	if !l.Filter {
		return a.room().AttachedID(l.Index)
	}
	p, err := tc.ReadProgram(l.Index, tc.Egress)
	if err != nil {
		return 0
	}
	return p.ID
}

// ingressID returns the id of our program that runs at the ingress of a link.
func (a *Agent) ingressID(l state.LinkRecord) (uint32, error) {
	if !l.Filter {
		return a.room().IngressID(l.Index), nil
	}
	p, err := tc.ReadProgram(l.Index, tc.Ingress)
	return p.ID, ignoreGone(err)
}
