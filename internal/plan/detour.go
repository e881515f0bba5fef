package plan

// A Detour is the way of all that arrives by a link with a limit that an ifb holds: over a
// device of Weir's own, whose queue has the limit as its rate. The zero Detour is none.
type Detour struct {
	Queue Queue
	Drift []string // in words: where it is not as Weir builds it
}
