package plan

import "fmt"

// link compares one link but for what workloads are promised on it.
func (d *differences) link(name string, have State, want *Want) {
	object := "link " + name
	h, isThere := have.Links[name]
	w, wanted := want.Links[name]
	switch {
	case !wanted:
		d.add(Remove, object, "take %s away, put back %s", h.Queue, orNone(h.Root.Kind))
		return
	case !isThere:
		d.add(Add, object, "%s, in place of %s", w.Queue, orNone(want.Before[name].Kind))
		return
	case h.Index != w.Index:
		d.add(Change, object, "is another device now: %s, in place of %s", w.Queue, orNone(want.Before[name].Kind))
		return
	case h.Drift != "":
		d.add(Change, object, "mend its queue: %s", h.Drift)
	case h.Queue != w.Queue:
		d.add(Change, object, "%s instead of %s", orOther(w.Queue, h.Queue), h.Queue)
	}
	if !h.Attached {
		d.add(Change, object, "put link_egress back")
	}
	if h.Rules.L2 != w.Rules.L2 {
		d.add(Change, object, "its packets start with %d bytes of link layer, not %d", w.Rules.L2, h.Rules.L2)
	}
	if h.Queue == w.Queue && h.Rules.unowned() != w.Rules.unowned() {
		d.add(Change, object, "mend the priorities of packets that nobody claims")
	}
}

func orNone(kind string) string {
	if kind == "" {
		return "no qdisc"
	}
	return kind
}

// orOther says more of a queue than its name where that alone does not differ.
func orOther(want, have Queue) string {
	if want.String() == have.String() {
		return fmt.Sprintf("%s (leaves %q, map %v)", want, want.Leaf, want.Map)
	}
	return want.String()
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
