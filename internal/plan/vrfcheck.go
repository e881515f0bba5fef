package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// AsksForVRF reports whether a policy needs to know if the kernel has VRFs. To find out may
// load a module, so that is asked only then.
func AsksForVRF(p *policy.Policy) bool { return len(p.VRFs) > 0 }

// WithoutVRF are the errors of a policy where the kernel has no VRFs; none where it has, or
// where that is not known.
func WithoutVRF(p *policy.Policy, f Features) (errs []policy.Diagnostic) {
	if !f.lacks(f.VRF, FeatureVRF) {
		return nil
	}
	for _, v := range p.VRFs {
		errs = append(errs, policy.Diagnostic{Span: v.Span, Message: fmt.Sprintf("vrf %q: kernel has no VRF", v.Name), Help: needsVRF})
	}
	return errs
}

// checkVRFs holds the VRFs of a policy against the host: what would be in the way is told
// before anything is touched.
func checkVRFs(p *policy.Policy, f Facts, add addFunc) {
	if lacks := WithoutVRF(p, f.Features); f.Root && len(lacks) > 0 {
		for _, d := range lacks {
			add(d.Span, d.Help, "%s", d.Message)
		}
		return
	}
	for _, v := range p.VRFs {
		object := fmt.Sprintf("vrf %q", v.Name)
		_, ours := f.Routing.Ours[v.Name]
		if _, there := f.Links[v.Name]; there && !ours {
			add(v.Span, "give it another name; what is there is not Weir's", "%s: a device of that name is there already", object)
		}
		if by := f.Routing.Tables[v.Table]; v.Table != 0 && by != "" {
			add(v.TableSpan, "take another, or leave it out for one that is free", "%s: table %d is in use: %s", object, v.Table, by)
		}
		for _, l := range v.Links {
			checkVRFLink(object, v, l, f, add)
		}
		checkDeclared(object, v, f, add)
	}
}

func checkVRFLink(object string, v policy.VRF, l policy.VRFLink, f Facts, add addFunc) {
	if _, ok := f.Links[l.Name]; !ok {
		add(l.Span, policy.DidYouMean(l.Name, slices.Sorted(maps.Keys(f.Links)), "ip link shows what there is"), "no interface %q here", l.Name)
		return
	}
	if master := f.Routing.Masters[l.Name]; master != "" {
		if _, ours := f.Routing.Ours[master]; !ours {
			add(l.Span, "move "+master+" instead, or ip link set "+l.Name+" nomaster", "%s: %s is enslaved to %s already", object, l.Name, master)
		}
	}
	if route := f.Routing.Shared[l.Name]; route != "" && !sharedWithin(v, f, l.Name) {
		add(l.Span, "move both, or neither", "%s: a route of %s is of another link too, which stays: %s", object, l.Name, route)
	}
}

// sharedWithin reports whether all links that share a route with one are in the VRF too.
func sharedWithin(v policy.VRF, f Facts, link string) bool {
	for other, route := range f.Routing.Shared {
		if route == f.Routing.Shared[link] && !slices.Contains(v.LinkNames(), other) {
			return false
		}
	}
	return true
}

// checkBound asks for what binds new sockets: a program of a cgroup, which reads the
// kernel's own types.
func (f Facts) checkBound(w policy.Workload, add addFunc) {
	object, at := fmt.Sprintf("workload %q", w.Name), w.Contract.VRFSpan
	if f.Cgroup2 == "" {
		add(at, f.mountCgroup2(), "%s: no cgroup2 mount here: no program sees sockets being made", object)
	}
	if lacks := f.Features.NoBinding(); f.Root && len(lacks) > 0 {
		add(at, "weir vrf service binds a unit by other means", "%s: %s", object, lacks[0])
	}
}

// NoBinding says what the kernel lacks to bind new sockets of workloads to a VRF, in words;
// nothing where it can, or where that could not be found out.
func (f Features) NoBinding() (lacks []string) {
	if f.lacks(f.SockCreate, FeatureSockCreate) {
		lacks = append(lacks, "kernel runs no program where sockets are made (no cgroup/sock_create)")
	}
	if f.lacks(f.BTF, FeatureBTF) {
		lacks = append(lacks, "kernel does not describe its own types (no BTF)")
	}
	return lacks
}

// Moves are the links that change their routing domain, sorted.
func Moves(have State, want *Want) (moves []string) {
	is, shall := domains(have.VRFs), domains(want.VRFs)
	for _, link := range union(is, shall) {
		if is[link] != shall[link] {
			moves = append(moves, link)
		}
	}
	return moves
}

// domains says of links in which VRF they are.
func domains(vrfs map[string]VRF) map[string]string {
	in := map[string]string{}
	for name, v := range vrfs {
		for _, l := range v.Links {
			in[l] = name
		}
	}
	return in
}

// Touched are the links that change their routing domain, and those of a VRF of which what is
// declared changes, sorted.
func Touched(have State, want *Want) []string {
	touched := Moves(have, want)
	for name, w := range want.VRFs {
		missing, left := w.but(have.VRFs[name].Declared), have.VRFs[name].Added.but(w.Declared)
		for _, a := range slices.Concat(missing.Addresses, left.Addresses) {
			if slices.Contains(w.Links, a.Link) {
				touched = append(touched, a.Link)
			}
		}
		if len(missing.Routes)+len(left.Routes) > 0 {
			touched = append(touched, w.Links...)
		}
	}
	slices.Sort(touched)
	return slices.Compact(touched)
}

// CutOff says of a link that it loses its default route, or that it may, if there is no link that
// keeps one: who is connected by it from further off may lose that. It loses one where it moves, and
// may where a VRF gets or loses one that is declared. One that is declared keeps nobody connected: nobody
// has come by it yet who would know. CutOff is "" if there is no such link.
func CutOff(have State, want *Want, f Facts) string {
	unsure := map[string]bool{}
	for _, link := range Moves(have, want) {
		unsure[link] = true
	}
	for name, w := range want.VRFs {
		if w.but(have.VRFs[name].Declared).defaults() || have.VRFs[name].Added.but(w.Declared).defaults() {
			for _, link := range w.Links {
				unsure[link] = true
			}
		}
	}
	last := ""
	for link, trusted := range f.Routing.Default {
		switch {
		case unsure[link]:
			last = max(last, link)
		case trusted:
			return ""
		}
	}
	return last
}
