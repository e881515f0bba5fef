package agent

import (
	"context"
	"errors"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A Status says of everything that was applied whether it is so.
type Status struct {
	SchemaVersion string             `json:"schema_version"`
	Verdict       string             `json:"verdict"` // one line for people
	OK            bool               `json:"ok"`      // nothing is broken or half done
	Policy        string             `json:"policy,omitempty"`
	Applied       *time.Time         `json:"applied,omitempty"`
	Proved        *state.Proof       `json:"proved,omitempty"` // when all of it was last read back and found kept: what is broken broke since
	Links         []LinkStatus       `json:"links"`
	Promises      []plan.Judgement   `json:"promises"`
	Limits        []LimitStatus      `json:"limits,omitempty"`  // how limits of what workloads send are held
	Weights       []plan.Weighing    `json:"weights,omitempty"` // what workloads with a weight had of limits that they share
	Sets          []SetStatus        `json:"sets,omitempty"`
	Differences   []plan.Difference  `json:"differences,omitempty"` // what weir apply would mend
	Unclaimed     map[string]Unnamed `json:"unclaimed,omitempty"`   // per link
	TCPMemory     *plan.TCPMemory    `json:"tcp_memory,omitempty"`  // of the host, where a workload's is bounded
	Steered       []SteeringStatus   `json:"steered,omitempty"`     // links under an experiment of weir steer
	Unfinished    *state.Journal     `json:"unfinished,omitempty"`
	Pending       *state.Pending     `json:"pending,omitempty"`
	Rollback      *state.Rollback    `json:"rollback,omitempty"`
	Warnings      []string           `json:"warnings,omitempty"`
}

// Unnamed is the traffic of one link that belongs to no workload.
type Unnamed struct {
	Unclaimed    plan.Traffic `json:"unclaimed"`
	Unclassified plan.Traffic `json:"unclassified"` // its headers do not say whose it is
}

// A LinkStatus is one link under contract.
type LinkStatus struct {
	Name    string        `json:"name"`
	Rung    string        `json:"rung"`
	Queue   string        `json:"queue"` // in words
	Why     string        `json:"why"`
	Lacks   []string      `json:"lacks,omitempty"` // what the rung does not promise
	Hook    string        `json:"hook"`            // "tcx" or "cls_bpf"
	Classes []ClassStatus `json:"classes,omitempty"`
}

// A ClassStatus is one class of a link as its qdisc counts it; class 0 is the
// least urgent.
type ClassStatus struct {
	Class   int    `json:"class"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Drops   uint64 `json:"drops"`
	Backlog uint64 `json:"backlog"` // bytes that wait
}

// A SetStatus is a contract that was given beside the policy.
type SetStatus struct {
	Name       string                  `json:"name"`
	Terms      string                  `json:"terms"`                                          // in words: "priority 3, at most 10Mbit, ingress at most 20Mbit"
	Priority   string                  `json:"priority"`                                       // by itself; "" if there is none
	Max        policy.Rate             `json:"max,omitempty" jsonschema:"type=string"`         // of egress
	MaxIngress policy.Rate             `json:"max_ingress,omitempty" jsonschema:"type=string"` // of what its sockets receive
	ByIngress  policy.Method           `json:"by_ingress,omitempty"`                           // how that is held, if it was told
	TCPMemory  policy.TCPMemory        `json:"tcp_memory,omitzero"`                            // that its TCP sockets may hold
	VRF        string                  `json:"vrf,omitempty"`                                  // that its new sockets are bound to
	Alive      bool                    `json:"alive"`
	Traffic    map[string]plan.Traffic `json:"traffic"` // per link
}

// Status reads everything back and judges it. It changes nothing.
func (a *Agent) Status(ctx context.Context) (s *Status, err error) {
	err = a.reading(func(r *state.Record) error {
		s, err = a.status(ctx, r)
		return err
	})
	return s, err
}

func (a *Agent) status(ctx context.Context, r *state.Record) (*Status, error) {
	if r.Applied == nil {
		return a.judge(r, nil), nil
	}
	p, err := a.parse(r.Applied)
	if err != nil {
		return nil, err
	}
	d, err := a.draft(ctx, r, p)
	var misfit policy.Errors
	if errors.As(err, &misfit) { // a link, a user or a process is gone
		s := a.outline(r)
		s.Warnings = append(s.Warnings, misfit.Error())
		s.Verdict = "broken: the host is not any more what the policy was applied to"
		if s.Unfinished != nil {
			s.Verdict = s.sentence()
		}
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return a.judge(r, d), nil
}

// outline is what the record says.
func (a *Agent) outline(r *state.Record) *Status {
	s := &Status{
		SchemaVersion: schemaVersion, Unfinished: r.Journal, Pending: r.Pending, Rollback: r.Rollback,
		Links: []LinkStatus{}, Promises: []plan.Judgement{}, Unclaimed: map[string]Unnamed{},
	}
	if r.Applied != nil {
		s.Policy, s.Applied, s.Proved = r.Applied.File, &r.Applied.When, r.Proof
	}
	if r.Pending != nil {
		if guarded, err := a.Scope.Guarded(); err == nil && !guarded {
			s.Warnings = append(s.Warnings, "nobody takes the unconfirmed change back: its guard has ended")
		}
	}
	var trouble []string
	s.Steered, trouble = a.steerings(r)
	s.Warnings = append(s.Warnings, trouble...)
	return s
}
