package plan

import "github.com/weir-net/weir/internal/policy"

// linkRules says what every contract means on one link.
func linkRules(p *policy.Policy, l policy.Link, q Queue, f LinkFacts, ids IDs, explicit []Explicit) LinkRules {
	link := l.Name
	r := LinkRules{
		Contracts:  make(map[ContractID]Promise, int(FirstID)+len(ids.Names)),
		BucketMask: q.BucketMask(), NoQueue: q.Absent(),
		Egress: limitTo(l.Egress.Limit), Ingress: limitTo(l.Ingress.Limit),
	}
	if f.Ethernet {
		r.L2 = 14
	}
	for level := range policy.Level(policy.Levels) {
		r.Contracts[LadderID+ContractID(level)] = Promise{Priority: q.Written(level)}
	}
	others := Promise{Priority: Keep}
	if p.Default != nil {
		others = promise(p.Default.Priority, link, q)
	}
	r.Contracts[Unclaimed], r.Contracts[Unclassified] = others, others
	for _, w := range p.Workloads {
		if w.Via == policy.ViaBPF {
			r.Contracts[ids.Names[w.Name].ID] = PromiseOf(w.Contract, ids.Names[w.Name], link, q)
		}
	}
	for name, n := range ids.Shares[link] {
		id := ids.Names[name].ID
		p := r.Contracts[id]
		p.Priority = q.WrittenShare(n)
		r.Contracts[id] = p
	}
	for _, e := range explicit {
		r.Contracts[ids.Names[e.Name].ID] = PromiseOf(e.Contract, ids.Names[e.Name], link, q)
	}
	for name := range ids.Shares[WaitingRoom] {
		id := ids.Names[name].ID
		p := r.Contracts[id]
		p.Answers = f.Ethernet
		r.Contracts[id] = p
	}
	return r
}

// PromiseOf is what a contract that has a number means on a link with a queue; of its
// share, which is one of all contracts', it knows nothing.
func PromiseOf(of policy.Contract, c Contract, link string, q Queue) Promise {
	p := promise(of.Priority, link, q)
	p.Serial, p.Limited, p.Here = c.Serial, !LimitOf(of.Egress).none(), limitTo(of.Egress.PerLink[link])
	p.Toward, p.Weighted = len(of.Egress.Toward) > 0, of.Egress.Weight != 0
	p.Answers = ArrivingOf(of).Answers && q.Leaf == LeafFQ
	return p
}

func promise(p policy.Priority, link string, q Queue) Promise {
	level := p.On(link)
	if level == policy.Unset {
		return Promise{Priority: Keep}
	}
	return Promise{Priority: q.Written(level)}
}
