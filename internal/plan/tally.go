package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A tally counts, for one contract, what it gains and loses in each table.
type tally map[string]*change

type change struct{ more, fewer int }

// String says what the kernel's tables lack and what they have too many, table
// by table.
func (t tally) String() string {
	texts := make([]string, 0, len(t))
	for _, table := range slices.Sorted(maps.Keys(t)) {
		var counts []string
		if n := t[table].more; n > 0 {
			counts = append(counts, fmt.Sprintf("%d missing", n))
		}
		if n := t[table].fewer; n > 0 {
			counts = append(counts, fmt.Sprintf("%d too many", n))
		}
		texts = append(texts, table+": "+strings.Join(counts, ", "))
	}
	return strings.Join(texts, "; ")
}

// tallies holds only contracts for which something changes.
type tallies map[ContractID]tally

// at returns a contract's change in one table.
func (t tallies) at(id ContractID, table string) *change {
	if t[id] == nil {
		t[id] = tally{}
	}
	if t[id][table] == nil {
		t[id][table] = new(change)
	}
	return t[id][table]
}

// A flow is a rule whatever number its tuple has.
type flow struct {
	tuple Tuple
	key   FlowKey
}

// flowsByShape is the flows with their tuples in place of the tuples' numbers:
// 10.0.0.0/8 and 10.0.0.0/16 are two rules.
func (r Rules) flowsByShape() map[flow]ContractID {
	all := make(map[flow]ContractID, len(r.Flows))
	for k, id := range r.Flows {
		f := flow{key: k}
		if int(k.Tuple) < len(r.Tuples) {
			f.tuple = r.Tuples[k.Tuple]
		}
		f.key.Tuple = 0
		all[f] = id
	}
	return all
}

// compareRules counts what each contract gains and loses. Ten thousand workloads
// cost a look-up an entry and, where nothing changes, no memory.
func compareRules(have, want Rules) tallies {
	t := tallies{}
	compare(t, "cgroups", have.Cgroups, want.Cgroups)
	compare(t, "v1 cgroups", have.Cgroups1, want.Cgroups1)
	compare(t, "users", have.Users, want.Users)
	compare(t, "executables", have.Exes, want.Exes)
	compare(t, "paths", have.Births.Paths, want.Births.Paths)
	compare(t, "patterns", have.Births.Prefixes, want.Births.Prefixes)
	compare(t, "names", have.Births.Names, want.Births.Names)
	if slices.Equal(have.Tuples, want.Tuples) {
		compare(t, "flows", have.Flows, want.Flows)
	} else {
		compare(t, "flows", have.flowsByShape(), want.flowsByShape())
	}
	return t
}

func compare[K comparable](t tallies, table string, have, want map[K]ContractID) {
	for k, was := range have {
		if shall, ok := want[k]; !ok || shall != was {
			t.at(was, table).fewer++
		}
	}
	for k, shall := range want {
		if was, ok := have[k]; !ok || shall != was {
			t.at(shall, table).more++
		}
	}
}
