package plan

import "maps"

// Settle makes one moment of several. Cgroups come and go, and the births keep
// the tables in step with them, so a table that is read once never quite fits a
// host that is looked at once. w is what a look wanted before the table was
// read as h; later is the table, and after what is wanted, once more. What one
// of the looks and both readings agree on is right; what only one look has seen
// need not be in the table.
func Settle(w *Rules, h *Rules, later, after Rules) {
	h.Cgroups, h.Cgroups1 = common(h.Cgroups, later.Cgroups), common(h.Cgroups1, later.Cgroups1)
	w.Cgroups = between(w.Cgroups, h.Cgroups, after.Cgroups)
	w.Cgroups1 = between(w.Cgroups1, h.Cgroups1, after.Cgroups1)
}

// CgroupsDiffer reports whether two sets of rules claim other cgroups.
func CgroupsDiffer(a, b Rules) bool {
	return !maps.Equal(a.Cgroups, b.Cgroups) || !maps.Equal(a.Cgroups1, b.Cgroups1)
}

// between is what a table should hold that was read, as have, between two looks.
func between(before, have, after map[uint64]ContractID) map[uint64]ContractID {
	wanted := common(before, after)
	maps.Copy(wanted, common(have, before))
	maps.Copy(wanted, common(have, after))
	return wanted
}

// common is what both maps hold.
func common(a, b map[uint64]ContractID) map[uint64]ContractID {
	both := map[uint64]ContractID{}
	for id, c := range a {
		if other, ok := b[id]; ok && other == c {
			both[id] = c
		}
	}
	return both
}
