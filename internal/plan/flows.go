package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// MaxTuples bounds the shapes of flow rules in one policy: the kernel side
// looks at one after the other.
const MaxTuples = 64

// flowRule is one flow before the tuples are numbered.
type flowRule struct {
	tuple    Tuple
	key      FlowKey
	contract ContractID
	span     policy.Span
}

// expand turns a flow selector into rules, one per port.
func expand(s policy.Selector, id ContractID) []flowRule {
	f := s.Flow
	r := flowRule{contract: id, span: s.Span}
	if f.Prefix.IsValid() {
		r.tuple.Fields |= FieldAddress
		r.tuple.Bits, r.key.Family, r.key.Address = mapped(f.Prefix)
	}
	if f.Protocol >= 0 {
		r.tuple.Fields |= FieldProtocol
		r.key.Protocol = uint8(f.Protocol)
	}
	if f.DSCP >= 0 {
		r.tuple.Fields |= FieldDSCP
		r.key.DSCP = uint8(f.DSCP)
	}
	if len(f.Ports) == 0 {
		return []flowRule{r}
	}
	r.tuple.Fields |= FieldPort
	var rules []flowRule
	for _, ports := range f.Ports {
		for port := uint32(ports.First); port <= uint32(ports.Last); port++ {
			r.key.Port = uint16(port)
			rules = append(rules, r)
		}
	}
	return rules
}

// mapped returns a prefix as bits of an IPv6 address.
func mapped(p netip.Prefix) (bits, family uint8, address [16]byte) {
	p = p.Masked()
	if p.Addr().Is4() {
		return uint8(96 + p.Bits()), 4, p.Addr().As16()
	}
	return uint8(p.Bits()), 6, p.Addr().As16()
}

// byPrecedence orders tuples as the kernel side tries them: the longest prefix
// first, then port before protocol before DSCP.
func byPrecedence(a, b Tuple) int {
	if c := cmp.Compare(a.addressBits(), b.addressBits()); c != 0 {
		return -c
	}
	for _, f := range []Fields{FieldPort, FieldProtocol, FieldDSCP} {
		if c := cmp.Compare(a.Fields&f, b.Fields&f); c != 0 {
			return -c
		}
	}
	return 0
}

// addressBits is -1 for a tuple that looks at no address.
func (t Tuple) addressBits() int {
	if t.Fields&FieldAddress == 0 {
		return -1
	}
	return int(t.Bits)
}

// compileFlows numbers the tuples and files every rule under its own. The first
// of two rules with one key keeps it; the other is reported.
func compileFlows(rules []flowRule) ([]Tuple, map[FlowKey]ContractID, []policy.Diagnostic) {
	var tuples []Tuple
	seen := map[Tuple]bool{}
	for _, r := range rules {
		if !seen[r.tuple] {
			seen[r.tuple] = true
			tuples = append(tuples, r.tuple)
		}
	}
	slices.SortFunc(tuples, byPrecedence)
	if len(tuples) > MaxTuples {
		return nil, nil, []policy.Diagnostic{{
			Span:    rules[0].span,
			Message: fmt.Sprintf("flows of %d different shapes, at most %d are possible", len(tuples), MaxTuples),
			Help:    "a shape is a set of keys and a prefix length: use fewer different prefix lengths",
		}}
	}
	index := map[Tuple]uint16{}
	for i, t := range tuples {
		index[t] = uint16(i)
	}
	var errs []policy.Diagnostic
	flows := make(map[FlowKey]ContractID, len(rules))
	first := make(map[FlowKey]int, len(rules)) // index of the rule that has it
	told := map[policy.Span]bool{}             // a port range is one finding
	for i, r := range rules {
		r.key.Tuple = index[r.tuple]
		j, taken := first[r.key]
		if !taken {
			flows[r.key], first[r.key] = r.contract, i
			continue
		}
		if flows[r.key] == r.contract || told[r.span] {
			continue
		}
		told[r.span] = true
		errs = append(errs, policy.Diagnostic{
			Span:    r.span,
			Message: "two workloads claim the same packets",
			Related: []policy.Related{{Span: rules[j].span, Note: "claimed here first"}},
			Help:    "make one of the two more specific",
		})
	}
	return tuples, flows, errs
}
