package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
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
	Links         []LinkStatus       `json:"links"`
	Promises      []plan.Judgement   `json:"promises"`
	Sets          []SetStatus        `json:"sets,omitempty"`
	Differences   []plan.Difference  `json:"differences,omitempty"` // what weir apply would mend
	Unclaimed     map[string]Unnamed `json:"unclaimed,omitempty"`   // per link
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
	Name     string                  `json:"name"`
	Priority string                  `json:"priority"`
	Alive    bool                    `json:"alive"`
	Traffic  map[string]plan.Traffic `json:"traffic"` // per link
}

// Status reads everything back and judges it. It changes nothing.
func (a *Agent) Status(ctx context.Context) (*Status, error) {
	var s *Status
	err := a.reading(func(r *state.Record) (err error) {
		s, err = a.status(ctx, r)
		return err
	})
	return s, err
}

func (a *Agent) status(ctx context.Context, r *state.Record) (*Status, error) {
	s := &Status{
		SchemaVersion: "1.0", Unfinished: r.Journal, Pending: r.Pending, Rollback: r.Rollback,
		Links: []LinkStatus{}, Promises: []plan.Judgement{}, Unclaimed: map[string]Unnamed{},
	}
	if r.Applied == nil {
		s.OK = r.Journal == nil
		s.Verdict = s.sentence()
		return s, nil
	}
	s.Policy, s.Applied = r.Applied.File, &r.Applied.When
	p, err := a.parse(r.Applied)
	if err != nil {
		return nil, err
	}
	w, f, err := a.want(ctx, p, r)
	if err != nil {
		// The policy does not fit the host any more: a link or a user is gone.
		s.Warnings = append(s.Warnings, err.Error())
		s.Verdict = "broken: the host is not any more what the policy was applied to"
		return s, nil
	}
	have, err := a.read(r)
	if err != nil {
		return nil, err
	}
	s.Differences = plan.Diff(have, w)
	seen, err := a.traffic(r)
	if err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	s.Promises = append(s.Promises, plan.Judge(withSets(p, r.Sets), w, s.Differences, seen)...)
	for _, l := range p.Links {
		s.Links = append(s.Links, a.linkStatus(l.Name, r.Links[l.Name], w.Rungs[l.Name]))
		s.Unclaimed[l.Name] = Unnamed{Unclaimed: seen[l.Name][plan.Unclaimed], Unclassified: seen[l.Name][plan.Unclassified]}
	}
	a.addSets(s, r, seen)
	s.addWarnings(w, f)
	s.OK = r.Journal == nil && len(s.Differences) == 0
	s.Verdict = s.sentence()
	return s, nil
}

// sentence is the first line of status.
func (s *Status) sentence() string {
	kept, broken, unprovable := 0, 0, 0
	for _, j := range s.Promises {
		switch j.Verdict {
		case plan.Kept:
			kept++
		case plan.Broken:
			broken++
		case plan.Unprovable:
			unprovable++
		}
	}
	switch {
	case s.Unfinished != nil:
		return fmt.Sprintf("unfinished: %s was broken off at step %d of %d (%s)",
			s.Unfinished.Verb, s.Unfinished.Step, s.Unfinished.Steps, s.Unfinished.Text)
	case s.Policy == "":
		return "nothing is applied"
	case broken > 0 || len(s.Differences) > 0:
		return fmt.Sprintf("broken: %d of %d promises, %d objects differ from the policy",
			broken, len(s.Promises), len(s.Differences))
	case unprovable > 0:
		return fmt.Sprintf("kept: %d of %d promises; %d can not be proved here", kept, len(s.Promises), unprovable)
	}
	if kept == 1 {
		return "kept: 1 promise"
	}
	return fmt.Sprintf("kept: all %d promises", kept)
}

func (a *Agent) addSets(s *Status, r *state.Record, seen map[string]map[plan.ContractID]plan.Traffic) {
	gone := a.gone(r)
	for _, set := range r.Sets {
		if gone[set.Name] {
			continue // the next change forgets it
		}
		status := SetStatus{
			Name: set.Name, Priority: set.Priority.String(),
			Alive: set.Selector != nil || lives(set), Traffic: map[string]plan.Traffic{},
		}
		for link, traffic := range seen {
			status.Traffic[link] = traffic[r.IDs.Names[set.Name].ID]
		}
		s.Sets = append(s.Sets, status)
	}
}

func (s *Status) addWarnings(w *plan.Want, f plan.Facts) {
	for _, sel := range w.Unfollowed {
		s.Warnings = append(s.Warnings, fmt.Sprintf(
			"%s: cgroups that match later are found by the next apply only: its wildcard stands in the middle", sel))
	}
	if f.Root && !f.Features.RawTracepoint {
		s.Warnings = append(s.Warnings, "this kernel does not tell of new cgroups and processes: children are found by the next apply only")
	}
}

func (a *Agent) linkStatus(name string, l state.LinkRecord, rung plan.Rung) LinkStatus {
	s := LinkStatus{
		Name: name, Rung: string(rung.Scheduler), Queue: rung.Queue.String(), Why: rung.Why, Lacks: rung.Lacks, Hook: "tcx",
	}
	if l.Filter {
		s.Hook = "cls_bpf"
	}
	if rung.Scheduler == policy.None {
		return s
	}
	_ = a.inScope(func() error {
		counters, err := tc.Counters(l.Index)
		for _, c := range counters {
			s.Classes = append(s.Classes, ClassStatus{c.Class, c.Packets, c.Bytes, c.Drops, c.Backlog})
		}
		return err // drift, which the differences tell of
	})
	return s
}

// traffic reads what passed under each contract on each link.
func (a *Agent) traffic(r *state.Record) (map[string]map[plan.ContractID]plan.Traffic, error) {
	g, err := a.room().Open(r.Generation)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	seen := map[string]map[plan.ContractID]plan.Traffic{}
	for _, name := range sortedKeys(r.Links) {
		counters, err := g.Counters(r.Links[name].Index)
		if err != nil {
			return seen, err
		}
		seen[name] = map[plan.ContractID]plan.Traffic{}
		for id, c := range counters {
			seen[name][id] = plan.Traffic{Packets: c.Packets, Bytes: c.Bytes}
		}
	}
	return seen, nil
}
