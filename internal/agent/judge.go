package agent

import (
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// judge says of what is applied whether it is so, by the reading of its draft;
// without one nothing is applied.
func (a *Agent) judge(r *state.Record, d *draft) *Status {
	s := a.outline(r)
	if d == nil {
		s.addSets(a.alive(s, r, nil), r.IDs, nil)
		s.OK = r.Journal == nil
		s.Verdict = s.sentence()
		return s
	}
	s.Differences = d.differences
	seen, err := a.traffic(r)
	if err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	held, err := a.held(r)
	if err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	pools, err := a.pools(r)
	if err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	sets := a.alive(s, r, d.tags)
	s.Promises = append(s.Promises, plan.Judge(judged(d.policy, sets), d.want, s.Differences,
		plan.Measured{Traffic: seen, Held: held, Pools: pools, Served: a.served(d.want), Filtered: a.filtered(d.want)})...)
	for _, l := range d.policy.Links {
		s.Links = append(s.Links, a.linkStatus(l.Name, r.Links[l.Name], d.want.Rungs[l.Name]))
		s.Unclaimed[l.Name] = Unnamed{Unclaimed: seen[l.Name][plan.Unclaimed], Unclassified: seen[l.Name][plan.Unclassified]}
	}
	s.addLimits(d.want)
	s.addHostMemory()
	s.Weights = d.want.Weighings(held)
	s.addSets(sets, r.IDs, seen)
	s.addWarnings(d)
	s.Warnings = append(s.Warnings, a.caveats(r)...)
	s.OK = r.Journal == nil && len(s.Differences) == 0 && !slices.ContainsFunc(s.Promises, func(j plan.Judgement) bool { return j.Verdict == plan.Broken })
	s.Verdict = s.sentence()
	return s
}

// addHostMemory tells how near the host is to its own bound of what sockets hold, where they
// have any.
func (s *Status) addHostMemory() {
	if !slices.ContainsFunc(s.Promises, func(j plan.Judgement) bool { return j.Memory != nil }) {
		return
	}
	m, err := workload.TCPMemory()
	if err != nil {
		s.Warnings = append(s.Warnings, err.Error())
		return
	}
	s.TCPMemory = &m
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

// alive is what was set; a set whose process is gone with all its children is
// forgotten by the next one.
func (a *Agent) alive(s *Status, r *state.Record, tags map[uint32]uint32) []state.Set {
	gone, err := a.gone(r.Sets, tags, r.IDs)
	if err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
	return slices.DeleteFunc(slices.Clone(r.Sets), func(set state.Set) bool { return gone[set.Name] })
}

// judged is a policy with all that was set beside it: what was given to a process
// is a promise as any other.
func judged(p *policy.Policy, sets []state.Set) *policy.Policy {
	q := *withSets(p, sets)
	q.Workloads = slices.Clone(q.Workloads)
	for _, e := range explicit(sets) {
		q.Workloads = append(q.Workloads, policy.Workload{Name: e.Name, Contract: e.Contract})
	}
	return &q
}

// addSets tells of what was set.
func (s *Status) addSets(sets []state.Set, ids plan.IDs, seen map[string]map[plan.ContractID]plan.Traffic) {
	for _, set := range sets {
		status := SetStatus{
			Name: set.Name, Terms: plan.Terms(set.Contract()), Max: set.Max, MaxIngress: set.MaxIngress, ByIngress: set.ByIngress, TCPMemory: set.TCPMemory, VRF: set.VRF,
			Alive: set.Selector != nil || lives(set.Process()), Traffic: map[string]plan.Traffic{},
		}
		if !set.Priority.Empty() {
			status.Priority = set.Priority.String()
		}
		for link, traffic := range seen {
			status.Traffic[link] = traffic[ids.Names[set.Name].ID]
		}
		s.Sets = append(s.Sets, status)
	}
}

func (s *Status) addWarnings(d *draft) {
	for _, what := range d.skipped {
		s.Warnings = append(s.Warnings, "not looked at: "+what)
	}
	for _, sel := range d.want.Unfollowed {
		s.Warnings = append(s.Warnings, fmt.Sprintf(
			"%s: cgroups that match later are found by the next apply only: its wildcard stands in the middle, or it is too long", sel))
	}
	for _, u := range d.want.Unbound {
		s.Warnings = append(s.Warnings, u.Message+"; "+u.Help)
	}
	if !d.facts.Features.RawTracepoint {
		s.Warnings = append(s.Warnings, "this kernel does not tell of new cgroups and processes: children are found by the next apply only")
	}
}

// caveats tells of what is as Weir made it and may not be enough: programs of
// others that see packets first, and births for which there was no room.
func (a *Agent) caveats(r *state.Record) (all []string) {
	for _, name := range sortedKeys(r.Links) {
		var ahead []string
		err := a.inScope(func() (err error) {
			ahead, err = a.room().Ahead(r.Links[name].Index)
			return err
		})
		if err != nil {
			all = append(all, err.Error())
		}
		for _, p := range ahead {
			all = append(all, fmt.Sprintf("link %s: %s runs before link_egress: what it passes by itself (TCX_PASS) goes under no contract", name, p))
		}
	}
	g, err := a.open(r)
	if err != nil {
		return all // the differences tell of it
	}
	defer g.Close()
	switch lost, err := g.Losses(); {
	case err != nil:
		all = append(all, err.Error())
	case lost.Tags > 0 || lost.Cgroups > 0:
		all = append(all, fmt.Sprintf("%d processes did not inherit their parent's contract and %d new cgroups have none, because a table was full: weir apply makes room",
			lost.Tags, lost.Cgroups))
	}
	return all
}

func (a *Agent) linkStatus(name string, l state.LinkRecord, rung plan.Rung) LinkStatus {
	s := LinkStatus{
		Name: name, Rung: string(rung.Scheduler), Queue: rung.Queue.String(), Why: rung.Why, Lacks: rung.Lacks, Hook: "tcx",
	}
	if l.Filter {
		s.Hook = "cls_bpf"
	}
	if rung.Scheduler == policy.None || l.Index == 0 { // no queue of ours, or a change was broken off before it
		return s
	}
	s.Classes, _ = a.classes(l.Index) // without them there is drift, which the differences tell of
	return s
}

// traffic reads what passed under each contract on each link.
func (a *Agent) traffic(r *state.Record) (map[string]map[plan.ContractID]plan.Traffic, error) {
	g, err := a.open(r)
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
