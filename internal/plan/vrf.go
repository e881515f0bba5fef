package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A VRF is a routing domain of its own: a device, its table, and the links in it.
type VRF struct {
	Table uint32
	Links []string // sorted
	Lacks []string // what it does not have of what makes it one, in words; none is wanted

	Declared          // read back: all that is there
	Added    Declared // read back: what Weir has added, or was about to
}

// String puts a VRF into words: "table 1000, eth0; default via 192.0.2.1 dev eth0".
func (v VRF) String() string {
	text := fmt.Sprintf("table %d, %s", v.Table, cmp.Or(strings.Join(v.Links, ", "), "no links"))
	if declared := v.words(); len(declared) > 0 {
		text += "; " + strings.Join(declared, ", ")
	}
	return text
}

// Routing is what a host has of routing domains and their tables, as far as VRFs need it.
type Routing struct {
	Ours    map[string]uint32 // the VRFs that Weir made -> table
	Masters map[string]string // device -> the one that it is enslaved to
	Tables  map[uint32]string // tables that are in use, but for those of ours -> by what, in words
	Shared  map[string]string // device -> a route of several devices of which it is one, in words
	Default map[string]bool   // devices by which a default route goes, of the main table or one of ours -> whether Weir has not added it

	Addresses map[string][]netip.Prefix // device -> its addresses, but for those that Weir has added
	OnLink    map[string][]netip.Prefix // device -> what is reached on it without a gateway, likewise
	NoIPv6    bool
}

// firstTable is from where on a table is looked for that nothing uses. Those below are
// often given out by hand.
const firstTable = 1000

// vrfsOf are the VRFs of a policy on this host. A table that the policy leaves open stays
// what it is, or is the first that nothing uses.
func vrfsOf(p *policy.Policy, f Facts) map[string]VRF {
	taken := map[uint32]bool{}
	for _, v := range p.VRFs {
		taken[v.Table] = true
	}
	for table := range f.Routing.Tables {
		taken[table] = true
	}
	for _, v := range p.VRFs {
		if v.Table == 0 {
			taken[f.Routing.Ours[v.Name]] = true
		}
	}
	all := map[string]VRF{}
	for _, v := range p.VRFs {
		table := cmp.Or(v.Table, f.Routing.Ours[v.Name])
		for next := uint32(firstTable); table == 0; next++ {
			if !taken[next] {
				table, taken[next] = next, true
			}
		}
		all[v.Name] = VRF{Table: table, Links: v.LinkNames(), Declared: declaredOf(v, f)}
	}
	return all
}

// NoVRF stands for the VRF of new sockets that is not there: they reach nothing, rather than
// what is outside of it.
const NoVRF = "of a device that is not there"

// bind notes the contracts whose new sockets are bound to a VRF. Those of a policy are bound to
// one of its own; what was given beside it may name any VRF of the host, which may have gone.
func (w *Want) bind(p *policy.Policy, f Facts, explicit []Explicit) {
	w.Bound, w.Astray = map[ContractID]string{}, map[string]string{}
	add := func(name, vrf string) {
		if vrf == "" {
			return
		}
		id := w.IDs.Names[name].ID
		if w.Bound[id] = vrf; !w.hasVRF(vrf, f) {
			w.Bound[id], w.Astray[name] = NoVRF, vrf
		}
	}
	for _, wl := range p.Workloads {
		if wl.Via == policy.ViaBPF {
			add(wl.Name, wl.Contract.VRF)
		}
	}
	for _, e := range explicit {
		add(e.Name, e.Contract.VRF)
	}
	w.Binds = len(w.Bound) > 0
}

// hasVRF reports whether there is a VRF once the policy is in force.
func (w *Want) hasVRF(name string, f Facts) bool {
	if _, wanted := w.VRFs[name]; wanted {
		return true
	}
	_, goes := f.Routing.Ours[name]
	return f.Links[name].VRF && !goes
}

// vrfs compares the VRFs that are there with those that shall be.
func (d *differences) vrfs(have, want map[string]VRF) {
	for _, name := range union(have, want) {
		object := "vrf " + name
		h, isThere := have[name]
		w, wanted := want[name]
		switch {
		case !wanted:
			d.add(Remove, object, "%s", h.leaving())
		case !isThere:
			d.add(Add, object, "%s", w)
		default:
			if text := h.unlike(w); text != "" {
				d.add(Change, object, "%s", text)
			}
		}
	}
}

// leaving says what becomes of the links of a VRF that goes.
func (v VRF) leaving() string {
	if len(v.Links) == 0 {
		return "its table goes with it"
	}
	text := strings.Join(v.Links, ", ") + " with addresses and routes back to the main table"
	if added := v.Added.words(); len(added) > 0 {
		text += ", but for what was declared: " + strings.Join(added, ", ")
	}
	return text
}

// unlike says how one VRF differs from another, "" if it does not.
func (v VRF) unlike(want VRF) string {
	var texts []string
	if v.Table != want.Table {
		texts = append(texts, fmt.Sprintf("table %d -> %d", v.Table, want.Table))
	}
	if !slices.Equal(v.Links, want.Links) {
		texts = append(texts, fmt.Sprintf("links %s -> %s", cmp.Or(strings.Join(v.Links, ", "), "none"), cmp.Or(strings.Join(want.Links, ", "), "none")))
	}
	for _, missing := range want.but(v.Declared).words() {
		texts = append(texts, missing+" is missing")
	}
	for _, left := range v.Added.but(want.Declared).words() {
		texts = append(texts, left+" is not declared any more")
	}
	return strings.Join(append(texts, v.Lacks...), "; ")
}

// unlikeBound says how two VRFs of new sockets differ, "" if they do not.
func unlikeBound(have, want string) string {
	if have == want {
		return ""
	}
	return fmt.Sprintf("new sockets in vrf %s -> %s", cmp.Or(have, "none"), cmp.Or(want, "none"))
}

// BoundTerms puts into words that new sockets are bound to a VRF.
func BoundTerms(vrf string) string { return "vrf " + vrf }

// judgeVRFs judges the VRFs themselves.
func judgeVRFs(want *Want, wrong map[string]string) (all []Judgement) {
	for _, v := range union(want.VRFs, want.VRFs) {
		j := Judgement{Link: v, Promise: PromiseVRF, Priority: policy.Unset, VRF: v, Verdict: Kept,
			Evidence: "read back: " + want.VRFs[v].String() + ", its own loopback, and rules that ask its table first"}
		if text := wrong["vrf "+v]; text != "" {
			j.Verdict, j.Evidence = Broken, text
		}
		all = append(all, j)
	}
	return all
}

// judgeBound judges that new sockets of a workload are bound to a VRF.
func judgeBound(workload, vrf, astray string, wrong map[string]string) Judgement {
	j := Judgement{Workload: workload, Link: EveryLink, Promise: PromiseVRF, Priority: policy.Unset, VRF: vrf, Verdict: Kept,
		Evidence: "read back: its new sockets are bound to " + vrf + "; those that were open before stay where they were"}
	broken := cmp.Or(wrong["workload "+workload], wrong[boundObject])
	if text := wrong["vrf "+vrf]; text != "" {
		broken = "vrf " + vrf + ": " + text
	}
	if astray != "" {
		j.VRF, broken = astray, "no VRF "+astray+" here: its new sockets reach nothing"
	}
	if broken != "" {
		j.Verdict, j.Evidence = Broken, broken
	}
	return j
}

// boundObject is what binds new sockets.
const boundObject = "new sockets"
