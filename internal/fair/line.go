package fair

// What a line gives beyond its rate, and keeps waiting, ns.
const (
	lineSpare = 2_000_000  // after a pause, or two segments' time where that is longer
	lineWait  = 2 * second // the longest
	lineAhead = 4_000_000  // what is asked for beyond a round trip
)

// A Line says when a rate would have brought all that a connection got. What it answers waits
// for that: so its sender goes on at that rate, and nothing that comes has to wait.
type Line struct {
	Due uint64 // ns; 0: nothing has come yet
	// Late says that something came so much later than that that it is not made up for. Who wants
	// to be held to the rate asks for more then: it may be that nothing waits.
	Late bool
}

// Expect has so many bytes come now, in ns, to a connection whose share, in bytes a second, is
// at least 1.
func (l *Line) Expect(now, wire, share uint64) {
	l.Late = l.Late || !l.Holds(now, share)
	if l.Due == 0 {
		l.Due = now
	}
	l.Due = min(max(l.Due, now-min(spare(share), now))+wire*second/share, now+lineWait)
}

// Holds says that a connection has had all of its share: the line was never idle for longer
// than is made up for. What comes first is what it was offered with its handshake.
func (l *Line) Holds(now, share uint64) bool { return l.Due == 0 || now < l.Due+spare(share) }

// Lag is for how long an answer may wait beyond the line, in ns: what comes later by that is made up for.
func Lag(share uint64) uint64 { return spare(share) / 2 }

func spare(share uint64) uint64 { return max(lineSpare, 2*Segment*second/share) }

// A Way is how far away the peer of a connection is, whose answers wait: its round trips, in ns.
type Way struct {
	Nearest uint64 // the shortest, or what it is taken for
	Usual   uint64 // the mean of those that were measured
}

// Measure counts a round trip. What came late makes the way longer, by its usual length at the
// most: so a connection asks for as much as comes in nearly all of its round trips, where those
// vary.
func (w *Way) Measure(measured uint64, late bool) {
	w.Usual = w.Usual - w.Usual/16 + measured/16
	if late {
		w.Nearest += w.Nearest/16 + 1
	}
	w.Nearest = min(w.Nearest, 2*w.Usual)
}

// Asks is how much a connection asks for, in bytes: what its share gives in its shortest round
// trip, in ns, and what has to be there for answers to wait; in whole segments, and two at least.
func Asks(share, nearest uint64) uint64 {
	return max((share*(nearest+lineAhead)/second+Segment-1)/Segment, 2) * Segment
}
