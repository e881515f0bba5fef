package plan

import "fmt"

// link compares one link but for what workloads are promised on it.
func (d *differences) link(name string, have State, want *Want) {
	object := "link " + name
	h, isThere := have.Links[name]
	w, wanted := want.Links[name]
	switch {
	case !wanted:
		d.add(Remove, object, "%s%s", h.Queue, andBack(h.Root))
		return
	case !isThere:
		d.add(Add, object, "%s, in place of %s%s", w.Queue, orNone(want.Before[name].Kind), w.Rules.limits()+w.Policed.limits()+w.Detour.limit())
		return
	case h.Index != w.Index:
		d.add(Change, object, "another device has this name now, with %s at its root", orNone(want.Before[name].Kind))
		return
	case h.Drift != "":
		d.add(Change, object, "%s", h.Drift)
	case !h.Queue.Equal(w.Queue):
		is, shall := h.Queue.unlike(w.Queue)
		d.add(Change, object, "%s -> %s", is, shall)
	}
	limits := h.Rules.unlikeLimits(w.Rules)
	switch {
	case !h.Attached:
		d.add(Change, object, "its programs do not run")
	case limits != "" || h.Ingress == w.Ingress:
	case w.Ingress:
		d.add(Change, object, "its program at ingress does not run")
	default:
		d.add(Change, object, "a program of its runs at ingress, where nothing is limited")
	}
	if limits != "" {
		d.add(Change, object, "%s", limits)
	}
	if policed := h.Policed.unlike(w.Policed); policed != "" {
		d.add(Change, object, "%s", policed)
	}
	if detour := h.Detour.unlike(w.Detour); detour != "" {
		d.add(Change, object, "%s", detour)
	}
	if h.Rules.L2 != w.Rules.L2 {
		d.add(Change, object, "its packets start with %d bytes of link layer, not %d", w.Rules.L2, h.Rules.L2)
	}
	if h.Queue.Equal(w.Queue) && h.Rules.unowned() != w.Rules.unowned() {
		d.add(Change, object, "packets that nobody claims have other priorities")
	}
}

// limits puts into words what all packets of the link may take, behind what is said
// before.
func (r LinkRules) limits() (text string) {
	if !r.Egress.none() {
		text += "; " + r.Egress.Promise()
	}
	if !r.Ingress.none() {
		text += "; ingress " + r.Ingress.String()
	}
	return text
}

// unlikeLimits says how the limits of two links' own differ, "" if they do not.
func (r LinkRules) unlikeLimits(other LinkRules) string {
	return phrases(r.Egress.unlike(other.Egress, "egress"), r.Ingress.unlike(other.Ingress, "ingress"))
}

// andBack says what stands at the root once Weir's queue is gone, where that is
// known.
func andBack(root Qdisc) string {
	if root.Kind == "" || root.Handle>>16 == RootHandle {
		return ""
	}
	return "; " + root.Kind + " is back"
}

func orNone(kind string) string {
	if kind == "" {
		return "no qdisc"
	}
	return kind
}

// unlike puts two queues that differ into words that differ.
func (q Queue) unlike(other Queue) (this, that string) {
	this, that = q.String(), other.String()
	if this == that {
		const more = "%s (leaves %q, buckets %d, map %v, shares %v)"
		return fmt.Sprintf(more, this, q.Leaf, q.Leaves(), q.Map, q.Shares),
			fmt.Sprintf(more, that, other.Leaf, other.Leaves(), other.Map, other.Shares)
	}
	return this, that
}

// unowned returns what is written for packets that no workload has. Those that
// are unclassified go by the default, which has a line of its own.
func (r LinkRules) unowned() (all [FirstID - Unclassified]Promise) {
	for i := range all {
		all[i] = r.Contracts[Unclassified+ContractID(i)]
	}
	if all[0] == r.Contracts[Unclaimed] {
		all[0] = Promise{Serial: ^uint16(0)} // of no contract
	}
	return all
}
