package plan

// IDs gives out contract numbers. Names keep theirs from apply to apply, so that
// counters go on and tags stay true.
type IDs struct {
	Names map[string]Contract `json:"names"`
	Next  uint16              `json:"next"` // the next serial
	// Shares are the numbers of the shares that workloads have of links: link ->
	// workload -> number.
	Shares map[string]map[string]int `json:"shares,omitempty"`
	// Toward are the numbers of the prefixes to which workloads may send only so much:
	// workload -> its prefixes in words -> number.
	Toward map[string]map[string]uint16 `json:"toward,omitempty"`
}

// Assign returns the ids of exactly these names, at most MaxContracts: known names
// keep theirs, new ones get a free number and a serial of their own, all others
// are forgotten. Shares and prefixes stay as they are. A pair of number and serial comes back after
// 65,535 others at the earliest.
func (ids IDs) Assign(names []string) IDs {
	next := IDs{Names: make(map[string]Contract, len(names)), Next: max(ids.Next, 1), Shares: ids.Shares, Toward: ids.Toward}
	var used [1 << 16]bool
	for _, n := range names {
		if c, ok := ids.Names[n]; ok {
			next.Names[n] = c
			used[c.ID] = true
		}
	}
	free := FirstID
	for _, n := range names {
		if _, ok := next.Names[n]; ok {
			continue
		}
		for used[free] {
			free++
		}
		used[free] = true
		next.Names[n] = Contract{ID: free, Serial: next.Next}
		if next.Next++; next.Next == 0 {
			next.Next = 1
		}
	}
	return next
}

// Highest returns the highest number in use.
func (ids IDs) Highest() ContractID {
	highest := Unclassified
	for _, c := range ids.Names {
		highest = max(highest, c.ID)
	}
	return highest
}
