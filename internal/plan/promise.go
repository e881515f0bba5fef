package plan

import "github.com/weir-net/weir/internal/policy"

// linkRules says what every contract means on one link.
func linkRules(p *policy.Policy, link string, q Queue, f LinkFacts, ids IDs, explicit []Explicit) LinkRules {
	r := LinkRules{Contracts: make(map[ContractID]Promise, int(FirstID)+len(ids.Names))}
	r.BucketMask = q.BucketMask()
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
		if w.Via != policy.ViaBPF {
			continue
		}
		c := ids.Names[w.Name]
		pr := promise(w.Contract.Priority, link, q)
		pr.Serial = c.Serial
		r.Contracts[c.ID] = pr
	}
	for _, e := range explicit {
		c := ids.Names[e.Name]
		pr := promise(e.Priority, link, q)
		pr.Serial = c.Serial
		r.Contracts[c.ID] = pr
	}
	return r
}

func promise(p policy.Priority, link string, q Queue) Promise {
	level := p.On(link)
	if level == policy.Unset {
		return Promise{Priority: Keep}
	}
	return Promise{Priority: q.Written(level)}
}
