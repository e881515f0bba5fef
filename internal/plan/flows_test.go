package plan

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

// compiled compiles flows, the n-th of contract n and on line n.
func compiled(t *testing.T, flows ...policy.Flow) ([]Tuple, map[FlowKey]ContractID, []policy.Diagnostic) {
	t.Helper()
	var rules []flowRule
	for i, f := range flows {
		rules = append(rules, expand(policy.Selector{Kind: policy.KindFlow, Flow: f, Span: policy.Span{Line: i + 1, Column: 3}}, ContractID(i+1))...)
	}
	return compileFlows(rules)
}

func port(first, last uint16) policy.Flow {
	f := policy.AnyFlow()
	f.Ports = []policy.PortRange{{First: first, Last: last}}
	return f
}

func cidr(text string) policy.Flow {
	f := policy.AnyFlow()
	f.Prefix = netip.MustParsePrefix(text)
	return f
}

func TestTupleOrder(t *testing.T) {
	all := []policy.Flow{policy.AnyFlow(), policy.AnyFlow(), port(22, 22), port(22, 22), cidr("10.0.0.0/8"), cidr("10.0.0.0/8"), cidr("fd00::/64"), cidr("0.0.0.0/0"), cidr("::/0")}
	all[0].DSCP, all[1].Protocol, all[3].Protocol = 46, 6, 17
	all[5].Ports = []policy.PortRange{{First: 22, Last: 22}}
	tuples, flows, errs := compiled(t, all...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []Tuple{
		{FieldAddress | FieldPort, 104}, {FieldAddress, 104}, {FieldAddress, 96}, {FieldAddress, 64}, {FieldAddress, 0},
		{FieldPort | FieldProtocol, 0}, {FieldPort, 0}, {FieldProtocol, 0}, {FieldDSCP, 0},
	}
	if diff := cmp.Diff(want, tuples); diff != "" {
		t.Error(diff)
	}
	if id := flows[FlowKey{Tuple: 1, Family: 4, Address: netip.MustParseAddr("10.0.0.0").As16()}]; id != 5 {
		t.Errorf("10.0.0.0/8 is of contract %d, want 5: %v", id, flows)
	}
	if id := flows[FlowKey{Tuple: 4, Family: 6}]; id != 9 {
		t.Errorf("::/0 is of contract %d, want 9: %v", id, flows)
	}
}

func TestFlowPorts(t *testing.T) {
	f := port(0, 65535)
	f.Ports = append(f.Ports, policy.PortRange{First: 7, Last: 9}) // again, and its own
	_, flows, errs := compiled(t, f)
	if len(flows) != 65536 || len(errs) > 0 {
		t.Errorf("%d rules, %v", len(flows), errs)
	}
	if flows[FlowKey{Port: 65535}] != 1 || flows[FlowKey{}] != 1 {
		t.Error("an end of the range is missing")
	}
}

func TestFlowMasksItsPrefix(t *testing.T) {
	_, flows, _ := compiled(t, cidr("10.1.2.3/8"), cidr("fd00::1/16"))
	for _, k := range []FlowKey{
		{Tuple: 0, Family: 4, Address: netip.MustParseAddr("10.0.0.0").As16()},
		{Tuple: 1, Family: 6, Address: netip.MustParseAddr("fd00::").As16()},
	} {
		if flows[k] == 0 {
			t.Errorf("no rule %+v in %v", k, flows)
		}
	}
}

func TestFlowConflict(t *testing.T) {
	_, _, errs := compiled(t, port(22, 22), port(20, 30), cidr("10.0.0.1/8"), cidr("10.9.9.9/8"))
	var lines []int
	for _, e := range errs {
		lines = append(lines, e.Span.Line)
		if e.Help == "" || len(e.Related) != 1 || e.Related[0].Span.Line == 0 {
			t.Errorf("no help or no other place: %+v", e)
		}
	}
	if diff := cmp.Diff([]int{2, 4}, lines); diff != "" {
		t.Errorf("a range that meets another is one finding:\n%s", diff)
	}
}

func TestFlowShapes(t *testing.T) {
	var flows []policy.Flow
	for bits := range MaxTuples + 1 {
		flows = append(flows, policy.Flow{Protocol: -1, DSCP: -1, Prefix: netip.PrefixFrom(netip.MustParseAddr("fd00::"), bits)})
	}
	if _, _, errs := compiled(t, flows[1:]...); len(errs) > 0 {
		t.Errorf("%d shapes: %v", MaxTuples, errs)
	}
	_, _, errs := compiled(t, flows...)
	if len(errs) != 1 || !strings.Contains(errs[0].Message, "flows of 65 different shapes, at most 64") {
		t.Errorf("%d shapes: %v", len(flows), errs)
	}
}
