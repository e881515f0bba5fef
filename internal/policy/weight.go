package policy

import "strconv"

// A Weight is as how many flows all flows of a workload count together in each limit
// that they share with others; 0: each counts as one.
type Weight uint8

// MaxWeight is the largest weight.
const MaxWeight Weight = 100

// String puts a weight into words: "weight 3".
func (w Weight) String() string { return "weight " + strconv.Itoa(int(w)) }

// weight reads the weight of a workload, 0 if it has none.
func (m *meaning) weight(raw rawBandwidth) Weight {
	if !m.unquoted(raw.weight, "weight") {
		return 0
	}
	n, err := number("weight", raw.weight.text, 1, uint64(MaxWeight))
	m.refuse(raw.weight.span, err)
	return Weight(n)
}
