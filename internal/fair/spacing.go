package fair

// What an answer waits more than the one before it, at most, in ns. TCP's timer waits for no less than twice as long beyond
// a round trip, and takes what is later than that for lost.
const spacingStep = 100_000_000

// Spacing keeps what the connections of one limit answer apart, where answers wait. Connections that began together, or
// were held up together once, would else answer together ever after, and what they ask for come at once.
type Spacing struct {
	next uint64 // ns: when the next one has its turn
}

// Answer is when somebody answers whose line is due, in ns, after it needed so many ns for what came: when those have had
// their turns who answer then, unless that is later than it may be. It comes to that by steps from what its last answer
// waited. Load is what the line's rate is the limit's share of. A turn is an eighth shorter than what comes in it, so that
// who is late finds one.
func (s *Spacing) Answer(due, took, load, may, waited uint64) uint64 {
	at := max(due, s.next)
	if at > due+may { // those wait for longer anyway
		return due
	}
	if at > due+waited+spacingStep {
		return due + waited + spacingStep
	}
	s.next = at + took*One/load*7/8
	return at
}
