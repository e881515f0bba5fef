package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mgmtPolicy = `version: 1
vrfs:
  mgmt: {table: 500, links: [eth0, eth1]}
  storage: {links: [eth2]}
  spare: {}
workloads:
  held: {match: [{cgroup: /a}], vrf: mgmt}
`

// TestVRFs chooses tables, and tells what changes.
func TestVRFs(t *testing.T) {
	p := parsed(t, mgmtPolicy)
	f := hostOf(p)
	f.Routing = Routing{Ours: map[string]uint32{"spare": 1001}, Tables: map[uint32]string{1000: "routes"}}
	w, errs := Wanted(p, f, IDs{}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := map[string]VRF{
		"mgmt": {Table: 500, Links: []string{"eth0", "eth1"}}, "storage": {Table: 1002, Links: []string{"eth2"}}, "spare": {Table: 1001, Links: []string{}},
	}
	if diff := cmp.Diff(want, w.VRFs); diff != "" {
		t.Fatalf("wanted are (-want +got)\n%s", diff)
	}
	id := w.Contracts["held"].ID
	for name, c := range map[string]struct {
		change func(*State)
		lines  []string
		broken []string // VRFs and workloads whose promise is broken
	}{
		"as wanted": {func(*State) {}, nil, nil},
		"nothing": {func(s *State) { *s = State{} }, []string{
			"+ vrf mgmt: table 500, eth0, eth1", "+ vrf spare: table 1001, no links", "+ vrf storage: table 1002, eth2",
			"+ workload held: vrf mgmt: cgroup: /a",
		}, []string{"held", "mgmt", "spare", "storage"}},
		"another": {func(s *State) {
			s.VRFs["old"] = VRF{Table: 7, Links: []string{"eth9"}}
			s.VRFs["mgmt"] = VRF{Table: 501, Links: []string{"eth0"}, Lacks: []string{"it is down"}}
		}, []string{"~ vrf mgmt: table 501 -> 500; links eth0 -> eth0, eth1; it is down", "- vrf old: eth9 with addresses and routes back to the main table"}, []string{"held", "mgmt"}},
		"unbound":  {func(s *State) { s.Bound = nil }, []string{"~ workload held: new sockets in vrf none -> mgmt"}, []string{"held"}},
		"detached": {func(s *State) { s.Binds = false }, []string{"~ new sockets: the program that binds them to their VRF does not run"}, []string{"held"}},
	} {
		t.Run(name, func(t *testing.T) {
			have := w.State
			have.VRFs, have.Bound = maps.Clone(w.VRFs), maps.Clone(w.Bound)
			c.change(&have)
			differences := Diff(have, w)
			var lines []string
			for _, d := range differences {
				lines = append(lines, d.String())
			}
			if diff := cmp.Diff(c.lines, lines); diff != "" {
				t.Errorf("differences (-want +got)\n%s", diff)
			}
			var broken []string
			for _, j := range Judge(p, w, differences, Measured{}) {
				if j.Verdict == Broken {
					broken = append(broken, strings.TrimSuffix(j.Workload+j.VRF, "mgmt"))
					if j.Workload == "" {
						broken[len(broken)-1] = j.VRF
					}
				}
			}
			slices.Sort(broken)
			if diff := cmp.Diff(c.broken, broken); diff != "" {
				t.Errorf("broken (-want +got)\n%s", diff)
			}
		})
	}
	if w.Bound[id] != "mgmt" || !w.Binds {
		t.Errorf("bound are %v", w.Bound)
	}
}

// What is in the way of a VRF is told with its place.
func TestVRFCheck(t *testing.T) {
	const btf = `workload "held": kernel does not describe its own types (no BTF)`
	for name, c := range map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"nothing":  {func(*Facts) {}, nil},
		"no VRF":   {func(f *Facts) { f.Features.VRF = false }, []string{`3:3 vrf "mgmt": kernel has no VRF`, `4:3 vrf "storage": kernel has no VRF`, `5:3 vrf "spare": kernel has no VRF`}},
		"not root": {func(f *Facts) { f.Features.VRF, f.Root = false, false }, nil},
		"name":     {func(f *Facts) { f.Links["mgmt"] = LinkFacts{} }, []string{`3:3 vrf "mgmt": a device of that name is there already`}},
		"ours":     {func(f *Facts) { f.Links["mgmt"], f.Routing.Ours = LinkFacts{}, map[string]uint32{"mgmt": 500} }, nil},
		"table":    {func(f *Facts) { f.Routing.Tables = map[uint32]string{500: "vrf blue"} }, []string{`3:17 vrf "mgmt": table 500 is in use: vrf blue`}},
		"link":     {func(f *Facts) { delete(f.Links, "eth1") }, []string{`3:36 no interface "eth1" here`}},
		"enslaved": {func(f *Facts) { f.Routing.Masters = map[string]string{"eth0": "br0"} }, []string{`3:30 vrf "mgmt": eth0 is enslaved to br0 already`}},
		"there already": {func(f *Facts) {
			f.Routing.Masters, f.Routing.Ours = map[string]string{"eth0": "old"}, map[string]uint32{"old": 7}
		}, nil},
		"shared":         {func(f *Facts) { f.Routing.Shared = map[string]string{"eth0": "default", "eth9": "default"} }, []string{`3:30 vrf "mgmt": a route of eth0 is of another link too, which stays: default`}},
		"shared within":  {func(f *Facts) { f.Routing.Shared = map[string]string{"eth0": "default", "eth1": "default"} }, nil},
		"no BTF":         {func(f *Facts) { f.Features.BTF = false }, []string{"7:38 " + btf}},
		"no sock_create": {func(f *Facts) { f.Features.SockCreate = false }, []string{`7:38 workload "held": kernel runs no program where sockets are made (no cgroup/sock_create)`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, mgmtPolicy)
			f := hostOf(p)
			c.change(&f)
			var got []string
			for _, d := range Check(p, f) {
				got = append(got, fmt.Sprintf("%d:%d %s", d.Line, d.Column, d.Message))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestCutOff moves links of which some have a default route.
func TestCutOff(t *testing.T) {
	p := parsed(t, mgmtPolicy)
	f := hostOf(p)
	w, _ := Wanted(p, f, IDs{}, nil)
	have := State{VRFs: map[string]VRF{"mgmt": {Links: []string{"eth0"}}, "old": {Links: []string{"eth9"}}}}
	moves := Moves(have, w)
	if diff := cmp.Diff([]string{"eth1", "eth2", "eth9"}, moves); diff != "" {
		t.Errorf("moves (-want +got)\n%s", diff)
	}
	for name, c := range map[string]struct {
		defaults map[string]bool
		want     string
	}{
		"none":                     {nil, ""},
		"one stays":                {map[string]bool{"eth0": true, "eth1": true}, ""},
		"all go":                   {map[string]bool{"eth1": true, "eth2": true}, "eth2"},
		"the last":                 {map[string]bool{"eth9": true}, "eth9"},
		"not moving":               {map[string]bool{"eth0": true}, ""},
		"what stays is declared":   {map[string]bool{"eth0": false, "eth1": true}, "eth1"},
		"the last is declared":     {map[string]bool{"eth9": false}, "eth9"},
		"declared, and not moving": {map[string]bool{"eth0": false}, ""},
	} {
		f.Routing.Default = c.defaults
		if got := CutOff(have, w, f); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
