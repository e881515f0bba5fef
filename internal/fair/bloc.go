package fair

// NewBloc returns the budget of flows that together count as so many, 1 to
// [MaxWeight], of a limit, however many they are. They vote in the bloc, and the bloc,
// with the sum of that up to its weight, in the limit. So its flows' shares are parts of
// what flows of that weight have, and it needs no trim: the limit's comes with its load.
func (b *Budget) NewBloc(weight uint64) *Budget {
	c := *b
	c.Unit, c.TickBytes = weight*One, b.TickBytes*weight
	c.Load, c.ring, c.bytes = 0, [Slots]uint64{}, 0
	c.limit = b
	c.inherit()
	c.appraise()
	return &c
}

// inherit takes over the load of the limit that it is a bloc in.
func (b *Budget) inherit() {
	if b.limit != nil {
		b.Trim = b.limit.Cut()
	}
}

// follow goes on to the tick of the limit, which alone knows what a stall is.
func (b *Budget) follow() {
	b.inherit()
	n := b.limit.tick - b.tick
	if n == 0 {
		return
	}
	for i := range min(n, Slots) {
		slot := (b.limit.tick - i) % Slots
		b.Load -= b.ring[slot]
		b.ring[slot] = 0
	}
	b.tick, b.bytes = b.limit.tick, 0
	b.appraise()
}

// note remembers for how long the bloc counts by what its flows have voted: until their
// votes expire in the mean, so that who is gone does not count because somebody else
// sends now and then.
func (b *Budget) note(f *Flow) {
	if b.limit == nil {
		return
	}
	b.stand = max(b.stand, b.tick*One)
	if due := f.due * One; due > b.stand {
		b.stand += (due - b.stand) * min(4*f.vote, b.Load) / max(b.Load, 1)
	}
}

// delegate lets a bloc vote in its limit: as its flows did, and no more than its weight.
// While any of these votes stands, that does for two ticks from each packet on.
func (b *Budget) delegate() {
	if b.limit == nil {
		return
	}
	vote, due := min(b.Load, b.Unit), max(b.stand/One, b.tick+2)
	if f := &b.vote; vote != f.vote || due > f.due {
		b.limit.cast(f, vote, min(due-b.tick, Slots-1))
	}
}
