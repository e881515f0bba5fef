package fair

// How many segments a handshake may offer: who is offered less than two waits for timers, and senders begin with ten.
const (
	offerLeast = 2
	offerMost  = Newcomer / Segment
)

// Offers are what the connections below one limit were offered with their handshakes, before anybody knows how many they
// will be: all of that may come at once, and a bucket that holds the limit has to have room for it.
type Offers struct {
	until uint64 // ns: when the limit would have brought all of it
}

// Segments says how many segments the next connection is offered now, in ns, below a limit in bytes a second whose bucket
// collects for so many ns: ten while a quarter of the bucket has room for them, and two beyond that.
func (o *Offers) Segments(now, limit, depth uint64) uint64 {
	each, until := Segment*second/limit, max(o.until, now)
	part := depth / 4
	room := part - min(part, until-now)
	n := min(max(room/each, offerLeast), offerMost)
	o.until = min(until+n*each, now+depth)
	return n
}
