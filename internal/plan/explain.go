package plan

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Subject is what the kernel side would see of a process, a socket or a
// packet. What is not known is zero.
type Subject struct {
	Tag     uint32
	Cgroups []CgroupMatch // its own v2 cgroup first, then its ancestors
	Cgroup1 CgroupMatch
	UID     uint32
	HasUID  bool
	Exe     ExeID
	ExePath string
	Packet  *Packet
}

// A Reason is one rule that fits a subject.
type Reason struct {
	Workload string   `json:"workload"`
	Rule     string   `json:"rule"` // in words
	Wins     bool     `json:"wins"`
	Binds    bool     `json:"binds,omitempty"`  // it loses, and the limits of its workload hold all the same:
	Limits   []string `json:"limits,omitempty"` // in words
	Why      string   `json:"why"`              // it wins, or loses
}

// An Explainer explains any number of subjects by one state: what it knows of ten
// thousand contracts is not found out for each.
type Explainer struct {
	have  State
	names map[ContractID]string
	tags  map[uint32]string
}

// NewExplainer explains by what the kernel holds.
func NewExplainer(have State) Explainer {
	e := Explainer{have, map[ContractID]string{}, map[uint32]string{}}
	for name, c := range have.Contracts {
		e.names[c.ID] = name
		e.tags[c.Tag()] = name
	}
	return e
}

// Explain returns every rule that fits a subject, the one that wins first. It
// asks what the kernel holds in the order in which the kernel side asks; no rule
// is the default.
func Explain(s Subject, have State) []Reason { return NewExplainer(have).Explain(s) }

// Explain is [Explain] of the one state.
func (e Explainer) Explain(s Subject) []Reason {
	have, r, names, tags := e.have, e.have.Rules, e.names, e.tags
	var all []Reason
	add := func(workload, rule, why string) {
		if len(all) > 0 {
			why = "comes after " + all[0].Rule
		}
		all = append(all, Reason{Workload: workload, Rule: rule, Wins: len(all) == 0, Why: why})
	}
	if name, ok := tags[s.Tag]; ok && s.Tag != 0 {
		add(name, "an explicit tag", "explicit tags come first")
	}
	claiming := lineage{}
	if len(all) > 0 {
		claiming.join(have.Contracts[all[0].Workload].ID)
	}
	for i, c := range s.Cgroups {
		id, ok := r.Cgroups[c.ID]
		if !ok {
			continue
		}
		add(names[id], byCgroup+c.Path, nearest(i))
		if above := claiming.join(id); above {
			last := &all[len(all)-1]
			if last.Limits = have.limitsFrom(id); last.Limits != nil {
				last.Binds = true
				last.Why += "; its limit binds all the same"
				last.Limits = append(last.Limits, have.weightBelow(all[:len(all)-1], id)...)
			}
		}
	}
	if id, ok := r.Cgroups1[s.Cgroup1.ID]; ok && s.Cgroup1.ID != 0 {
		add(names[id], fmt.Sprintf("v1 cgroup %s:%s", r.Controller1, s.Cgroup1.Path), "the socket's maker was in it")
	}
	if id, ok := r.Users[s.UID]; ok && s.HasUID {
		add(names[id], fmt.Sprintf("user id %d", s.UID), "no tag or cgroup claims it")
	}
	if id, ok := r.Exes[s.Exe]; ok && s.Exe != (ExeID{}) {
		add(names[id], "executable "+s.ExePath, "no tag, cgroup or user claims it")
	}
	if s.Packet != nil {
		for i, t := range r.Tuples {
			if id, rule, ok := r.matchTuple(uint16(i), t, *s.Packet); ok {
				add(names[id], rule, "the most specific flow; nothing else claims it")
			}
		}
	}
	return all
}

// byCgroup begins what a rule of a v2 cgroup is called.
const byCgroup = "cgroup "

// weightBelow says in words as how many flows a subject's workload counts in the limits of
// one whose cgroup is further up, by the rules that fit it so far: nothing where each flow
// counts as one.
func (s State) weightBelow(nearer []Reason, id ContractID) []string {
	return s.weightIn(nearer, func(of Owner) bool { return of.Contract == id })
}

// WeightOn says it of the own limit of what leaves by a link, by all rules that fit.
func (s State) WeightOn(link int, all []Reason) []string {
	return s.weightIn(all, func(of Owner) bool { return of.Contract == OwnEgress && of.Link == link })
}

// weightIn asks all that claim a subject, of which the outermost with a weight counts.
func (s State) weightIn(claiming []Reason, in func(Owner) bool) (words []string) {
	l := lineage{}
	for _, r := range claiming {
		id := s.Contracts[r.Workload].ID
		above := (r.Wins || strings.HasPrefix(r.Rule, byCgroup)) && l.join(id)
		if !r.Wins && !above {
			continue
		}
		for of, weight := range s.Rules.Blocs {
			if of.Member == id && in(of) {
				words = []string{"where all of " + r.Workload + " has " + weight.String()}
			}
		}
	}
	return words
}

func nearest(i int) string {
	if i == 0 {
		return "its own cgroup"
	}
	return "the nearest ancestor cgroup that is claimed"
}

// matchTuple does what the kernel side does for one shape of rule.
func (r Rules) matchTuple(index uint16, t Tuple, p Packet) (ContractID, string, bool) {
	if t.Fields&FieldPort != 0 && !p.Ports {
		return 0, "", false
	}
	type ends struct{ address, port netip.AddrPort }
	roles := []ends{{p.Dest, p.Dest}}
	if t.Fields&(FieldAddress|FieldPort) != 0 {
		roles = append(roles, ends{p.Source, p.Source})
	}
	if t.Fields&FieldAddress != 0 && t.Fields&FieldPort != 0 {
		roles = append(roles, ends{p.Dest, p.Source}, ends{p.Source, p.Dest})
	}
	for _, e := range roles {
		key := FlowKey{Tuple: index}
		if t.Fields&FieldAddress != 0 {
			prefix, err := e.address.Addr().Prefix(prefixBits(e.address.Addr(), t.Bits))
			if err != nil {
				continue
			}
			_, key.Family, key.Address = mapped(prefix)
		}
		if t.Fields&FieldPort != 0 {
			key.Port = e.port.Port()
		}
		if t.Fields&FieldProtocol != 0 {
			key.Protocol = p.Protocol
		}
		if t.Fields&FieldDSCP != 0 {
			key.DSCP = p.DSCP
		}
		if id, ok := r.Flows[key]; ok {
			return id, key.describe(t), true
		}
	}
	return 0, "", false
}

// prefixBits turns bits of a mapped address into bits of the address itself; -1
// is a prefix that is too short for the family.
func prefixBits(a netip.Addr, bits uint8) int {
	if a.Is4() {
		return int(bits) - 96
	}
	return int(bits)
}

// describe puts a flow rule into words.
func (k FlowKey) describe(t Tuple) string {
	text := "flow"
	if t.Fields&FieldAddress != 0 {
		address := netip.AddrFrom16(k.Address).Unmap()
		text += fmt.Sprintf(" cidr %s/%d", address, prefixBits(address, t.Bits))
	}
	if t.Fields&FieldPort != 0 {
		text += fmt.Sprintf(" port %d", k.Port)
	}
	if t.Fields&FieldProtocol != 0 {
		text += " protocol " + policy.ProtocolName(int16(k.Protocol))
	}
	if t.Fields&FieldDSCP != 0 {
		text += " dscp " + policy.DSCPName(int8(k.DSCP))
	}
	return text
}
