package fair

// A vote stands for longer than the packets that it was for, as it has to wait for more. Of
// who sends much now and then that is most of the time: it has the limit count somebody who
// wants nothing, and leaves unused what it gives him. So what a flow's votes stood too long
// is taken off its next ones, within these bounds.
const (
	overstayAge   = 100_000_000 // ns, within which it is made good or not at all
	overstayTicks = 4           // in which most of it is, and how much there may be
)

// settle adds to the overstay of a flow how much longer its vote has stood than it used its
// share since, in ns times [Budget.Unit], or takes off how much less. Only an application that
// had no more to send is given any: of one that had, it is a timer that was late.
func (b *Budget) settle(f *Flow, now uint64) {
	age := now - f.since
	if age > overstayAge {
		f.over = 0
		return
	}
	ends := b.began() + f.due*b.Tick - b.tick*b.Tick // over 0 again where it has expired
	stood := f.vote * (min(max(ends, f.since), now) - f.since)
	used := b.part(f, age) * age
	switch {
	case stood < used:
		f.over -= min(used-stood, f.over)
	case f.AppLimited:
		f.over = min(f.over+stood-used, overstayTicks*b.Tick*b.Unit)
	}
}

// refund is what a flow's next vote is less than what it says, for its overstay: nothing where
// the limit has not been left unused, so that none is ever exceeded for it.
func (b *Budget) refund(f *Flow) uint64 {
	slack := b.slack()
	unused := min(2*slack-min(b.beyond(), 2*slack), slack)
	return min(f.said-f.said/16, f.over/(overstayTicks*b.Tick)) * unused / slack
}
