package fair

// Newcomer is the most that a flow sends before it counts as one more, in bytes:
// the ten segments that TCP does not pace in a new connection.
const Newcomer = 10 * Segment

// Sums that could grow without end stop here, far above anything that decides.
const (
	maxUsed = 1 << 63 // bytes times load
	maxGap  = 1 << 34 // bytes of all flows from one packet of a flow to its next
	maxLoad = 1 << 31 // of a bloc's flows
)

// Flow is what is known of one flow below one budget.
type Flow struct {
	Window uint64 // over which its use is measured, ns: its round trip; a tick at least
	Exact  bool   // something else holds it to its share: it counts as no more than that
	Held   bool   // and does so now: it counts as no less, if it uses half of it, and as soon as it has sent more than a segment
	Fills  bool   // it waits in one line with all others, and has all on its way that it asks for: it counts as one, whatever it uses
	// AppLimited says that its application had no more to send, so that nothing else kept
	// it from its share.
	AppLimited bool

	Measured uint64 // its use at the last vote as it was, times Unit; twice that at most

	load  uint64 // for which its pace was cut, times One; 0: not yet
	said  uint64 // the part of its share that it uses, times Unit
	vote  uint64 // that, less what is refunded for its overstay: what counts
	due   uint64 // tick in which the vote expires; it stands while that is to come
	since uint64 // when it voted, ns
	used  uint64 // bytes since then, each times the load for which its pace was cut
	fresh uint64 // bytes since then
	size  uint64 // of its last packet, bytes
	over  uint64 // its overstay
	low   bool   // its use fell at the last vote, which was not believed
}

// Pace cuts the pace of a flow to its share and returns it, in bytes per second on
// the wire: at least 1, as TCP takes 0 for no pace, and at most the limit and
// [MaxPace].
func (b *Budget) Pace(f *Flow) uint64 {
	b.inherit()
	f.load = b.Cut()
	b.Stay(f, 2*b.gap(f)) // at a pace that was cut after the vote was cast
	return max(1, min(b.shareAt(f.load), MaxPace))
}

// Packet charges a flow for a packet of so many bytes on the wire that it sends
// now. Now is of one clock, in ns after 0, and never earlier than what any flow of
// the budget was charged at.
func (b *Budget) Packet(f *Flow, now, wire uint64) {
	b.pass(now, wire)
	f.size = wire
	f.fresh += wire
	if f.load == 0 {
		f.load = b.Cut()
	}
	if f.since == 0 {
		f.since = now
	}
	b.ask(f, now)
	f.used = min(f.used+wire*f.load, maxUsed)
	b.delegate()
}

// Prepay charges a flow for bytes that it may send from now on, beside the packet that it has just been charged for. It may
// never send them, so they make it no newcomer.
func (b *Budget) Prepay(f *Flow, bytes uint64) {
	for of := b; of != nil; of = of.limit {
		of.bytes += bytes
	}
	f.used = min(f.used+bytes*f.load, maxUsed)
}

// pass counts bytes in the running tick.
func (b *Budget) pass(now, wire uint64) {
	if b.limit == nil {
		b.advance(now)
	} else {
		b.limit.pass(now, wire)
		b.follow()
	}
	b.bytes += wire
}

// ask lets a flow vote if it has something new to say: it is back from a pause, its
// window is over, or it has sent too much for one that does not count.
func (b *Budget) ask(f *Flow, now uint64) {
	age, window := now-f.since, max(b.Tick, f.Window)
	switch {
	case !b.stands(f) && f.said >= b.Unit/2 && f.size >= Segment:
		// It was greedy before the pause, and is believed at once.
		b.elect(f, now, f.said, window)
	case age >= window:
		vote, hold := b.use(f, age), age+age/4
		if f.low {
			hold = window // what is not believed is asked again soon
		}
		b.elect(f, now, vote, hold)
	case (!b.stands(f) || f.said < b.Unit/4) && b.newcomer(f):
		b.elect(f, now, b.Unit, window)
	}
}

// newcomer says whether a flow has sent enough to count: a tick of its share, or more than it may before it is held back.
func (b *Budget) newcomer(f *Flow) bool {
	enough := uint64(Newcomer)
	if f.Held || f.Fills {
		enough = Segment + 1
	}
	return f.fresh >= enough || f.fresh*b.Cut() >= b.TickBytes
}

// use is the part of its share that a flow has used since its vote, age ns ago.
// From packet to packet it is Unit for a greedy flow, however few
// it sends. Much less is believed the second time only: a late timer looks like a
// lack of demand.
func (b *Budget) use(f *Flow, age uint64) uint64 {
	f.Measured = b.part(f, age)
	most := b.Unit + b.Unit/8
	if f.Exact {
		most = b.Unit
	}
	use := min(f.Measured, most)
	if f.Fills || f.Held && use >= b.Unit/2 {
		use = b.Unit
	}
	if b.stands(f) && use < f.said-f.said/4 && !f.low {
		f.low = true
		return f.said
	}
	f.low = false
	return use
}

// part is the part of its share that it has used since then as it was, times Unit; twice that
// at most.
func (b *Budget) part(f *Flow, age uint64) uint64 {
	return min(f.used/max(b.allowance(age), 1), 2*b.Unit)
}

// elect begins a flow's next window with what it says, which stands for a time in ns
// and two packets more.
func (b *Budget) elect(f *Flow, now, said, hold uint64) {
	b.settle(f, now)
	f.said = said
	b.cast(f, said-b.refund(f), b.ticks(hold+2*b.gap(f)))
	f.since, f.used, f.fresh = now, 0, 0
}

// Stay lets a flow's vote stand for a time in ns at least, until when the flow sends no more.
func (b *Budget) Stay(f *Flow, ns uint64) {
	need := b.ticks(ns)
	if b.stands(f) && f.due-b.tick < need {
		b.cast(f, f.vote, need)
	}
}

// cast replaces a flow's vote; it stands for so many ticks.
func (b *Budget) cast(f *Flow, vote, ticks uint64) {
	if b.stands(f) {
		b.ring[f.due%Slots] -= f.vote
		b.Load -= f.vote
	}
	f.vote, f.due = vote, b.tick+ticks
	b.ring[f.due%Slots] += vote
	b.Load += vote
	b.note(f)
}

// stands says whether a flow's vote has not expired. One further ahead than the ring
// was cast in a budget that is gone.
func (b *Budget) stands(f *Flow) bool { return f.due > b.tick && f.due-b.tick < Slots }

// gap is the time from a flow's last packet to its next, ns.
func (b *Budget) gap(f *Flow) uint64 { return min(f.size*f.load/b.Unit, maxGap) * second / b.Limit }
