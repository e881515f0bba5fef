package agent

import (
	"context"
	"time"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// A Top is what happens under all contracts, a second.
type Top struct {
	SchemaVersion string    `json:"schema_version"`
	When          time.Time `json:"when"` // its end
	Verdict       string    `json:"verdict"`
	OK            bool      `json:"ok"`      // nothing is broken or half done
	Checked       time.Time `json:"checked"` // when that was found
	plan.Speeds
}

// A Watch takes readings of what happens under contracts. It remembers the last one.
type Watch struct {
	agent   *Agent
	last    plan.Reading
	verdict *Status
	checked time.Time
}

// Watch begins to. The first [Watch.Next] takes as long as that is told to wait.
func (a *Agent) Watch() *Watch { return &Watch{agent: a} }

// verdictFor is how long a verdict is good: it takes reading everything back.
const verdictFor = 10 * time.Second

// Next is what happened since the last time that it was called; the first time it looks
// twice, so long apart. Where nothing is applied it returns ErrNothingApplied.
func (w *Watch) Next(ctx context.Context, apart time.Duration) (*Top, error) {
	if w.verdict == nil || w.agent.now().Sub(w.checked) >= verdictFor {
		s, err := w.agent.Status(ctx)
		if err != nil {
			return nil, err
		}
		w.verdict, w.checked = s, w.agent.now()
	}
	if w.last.When.IsZero() {
		var err error
		if w.last, err = w.agent.look(ctx); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(apart):
		}
	}
	is, err := w.agent.look(ctx)
	if err != nil {
		return nil, err
	}
	was := w.last
	w.last = is
	return &Top{
		SchemaVersion: schemaVersion, When: is.When, Verdict: w.verdict.Verdict, OK: w.verdict.OK, Checked: w.checked,
		Speeds: *plan.SpeedsBetween(was, is),
	}, nil
}

// look reads all that is counted.
func (a *Agent) look(ctx context.Context) (reading plan.Reading, err error) {
	err = a.reading(func(r *state.Record) error {
		s, err := a.enter(ctx, r)
		if err != nil {
			return err
		}
		defer s.close()
		if err := s.readLinks(); err != nil {
			return err
		}
		reading, err = s.count(ctx)
		return err
	})
	return reading, err
}

func (s *scene) count(ctx context.Context) (plan.Reading, error) {
	all := plan.Reading{Links: map[string]plan.LinkReading{}, Workloads: map[string]plan.WorkloadReading{}}
	var err error
	if all.TCPMemory, err = workload.TCPMemory(); err != nil {
		return all, err
	}
	bounds, err := s.bounds()
	if err != nil {
		return all, err
	}
	use, err := s.socketCounts(ctx)
	if err != nil {
		return all, err
	}
	held, err := s.g.Held()
	if err != nil {
		return all, err
	}
	limits := s.limitReadings(held)
	for name, c := range s.record.IDs.Names {
		one := plan.WorkloadReading{Limits: limits[c.ID], Memory: bounds[name], Sockets: use[name].Count, Holds: use[name].Held}
		if h, counted := held[plan.Owner{Contract: c.ID, Link: plan.AtSockets}]; counted {
			one.Received = &plan.Traffic{Bytes: h.Passed}
		}
		all.Workloads[name] = one
	}
	p, err := s.parse(s.record.Applied)
	if err != nil {
		return all, err
	}
	all.When = s.now() // close to the counters: speeds are of the time between
	for _, l := range p.Links {
		at, known := s.have.Links[l.Name]
		if !known {
			continue
		}
		if one, err := s.linkReading(l, at); err == nil { // or it is going away, and the verdict tells of it
			all.Links[l.Name] = one
		}
	}
	return all, nil
}

// linkReading counts what came to a link and what went.
func (s *scene) linkReading(l policy.Link, at plan.LinkState) (all plan.LinkReading, err error) {
	all.Rate, all.Under = l.Rate, map[string]plan.Traffic{}
	err = s.inScope(func() (err error) {
		all.Sent, all.Received, err = host.Traffic(at.Index)
		return err
	})
	if err != nil {
		return all, err
	}
	counters, err := s.g.Counters(at.Index)
	if err != nil {
		return all, err
	}
	for id, c := range counters {
		all.Under[s.rowOf(id)] = plan.Traffic{Packets: c.Packets, Bytes: c.Bytes}
	}
	if at.Queue.Scheduler == policy.None {
		return all, nil
	}
	classes, _ := s.classes(at.Index) // without them there is drift, which the verdict tells of
	for _, c := range classes {
		all.Dropped += c.Drops
	}
	return all, nil
}

// rowOf names the row of a contract.
func (s *scene) rowOf(id plan.ContractID) string {
	switch id {
	case plan.Unclaimed:
		return plan.RowUnclaimed
	case plan.Unclassified:
		return plan.RowUnclassified
	}
	return s.names[id]
}

// limitReadings counts what passed below the limits of each contract.
func (s *scene) limitReadings(held map[plan.Owner]plan.Held) map[plan.ContractID]map[string]plan.LimitReading {
	all := map[plan.ContractID]map[string]plan.LimitReading{}
	add := func(id plan.ContractID, terms string, r plan.LimitReading) {
		if all[id] == nil {
			all[id] = map[string]plan.LimitReading{}
		}
		all[id][terms] = r
	}
	below := func(id plan.ContractID, owner plan.Owner, terms string, limit plan.Limit) {
		owner.Contract = id
		for _, one := range limit.Amounts() {
			owner.Packets = one.PPS != 0
			h := held[owner]
			add(id, terms+" "+one.String(), plan.LimitReading{
				Most: uint64(one.Max) + uint64(one.PPS), Packets: owner.Packets, Ingress: owner.Link == plan.AtSockets,
				Passed: h.Passed, Dropped: h.Dropped, Marked: h.Marked,
			})
		}
	}
	for id, l := range s.have.Rules.Limits {
		below(id, plan.Owner{}, plan.PromiseEgress, l)
	}
	for id, l := range s.have.Rules.Arriving {
		below(id, plan.Owner{Link: plan.AtSockets}, plan.PromiseIngress, l)
	}
	for id, to := range s.have.Rules.TowardOf() {
		for prefixes, t := range to {
			below(id, plan.Owner{Toward: t.Number}, plan.PromiseEgress+" to "+prefixes, t.Limit)
		}
	}
	for name, l := range s.have.Links {
		for id, p := range l.Rules.Contracts {
			below(id, plan.Owner{Link: l.Index}, name+": "+plan.PromiseEgress, p.Here)
		}
	}
	for owner, share := range s.lookAtShares(&plan.Want{State: s.have}) {
		name, q := s.linkAt(owner.Link)
		for n, id := range s.have.Links[name].Entitled() {
			if id == owner.Contract {
				add(id, name+": "+q.Shares[n].String(), plan.LimitReading{Most: uint64(q.Shares[n].Max), Passed: share.Bytes, Dropped: share.Drops})
			}
		}
	}
	return all
}

// linkAt is the link with an index.
func (s *scene) linkAt(index int) (string, plan.Queue) {
	for name, l := range s.have.Links {
		if l.Index == index {
			return name, l.Queue
		}
	}
	return "", plan.Queue{}
}

// socketCounts counts the TCP sockets of workloads, and what they hold. It asks the kernel's
// socket tables alone: nobody looks at each process every other second.
func (s *scene) socketCounts(ctx context.Context) (map[string]SocketHolder, error) {
	t, err := s.listSockets(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]SocketHolder{}
	for _, u := range t.uses(s) {
		h := all[u.workload]
		h.Count++
		h.Held += u.Held
		all[u.workload] = h
	}
	return all, nil
}
