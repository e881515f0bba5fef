package fair

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNewBudget(t *testing.T) {
	for _, c := range []struct{ limit, tick uint64 }{
		{MinLimit, 1_514_000_000}, // eight segments' time
		{1_250_000, 9_689_600},
		{hundredMbit, MinTick},
		{MaxLimit, MinTick},
	} {
		b := NewBudget(c.limit, 7)
		if b.Tick != c.tick || b.Share() != c.limit || b.Load != 0 || b.Trim != One {
			t.Errorf("limit %d: tick %d, share %d, load %d, trim %d", c.limit, b.Tick, b.Share(), b.Load, b.Trim)
		}
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct{ load, trim, want uint64 }{
		{0, One, 1_000_000},
		{One / 2, One, 1_000_000}, // never less than one flow
		{One, One, 1_000_000},
		{4 * One, One, 250_000},
		{5 * One / 2, One, 400_000},
		{One, One - One/128, 1_000_000}, // what was lost does not lift it above the limit
		{4 * One, One - One/128, 251_968},
		{4 * One, One + One/32, 242_424},
	} {
		b := NewBudget(1_000_000, 0)
		b.Load, b.Trim = c.load, c.trim
		if got := b.Share(); got != c.want {
			t.Errorf("load %d, trim %d: share %d, want %d", c.load, c.trim, got, c.want)
		}
	}
}

// TestRepay moves what was sent from the limit by parts of a slack, 1/32 s.
func TestRepay(t *testing.T) {
	const slack = 1_000_000 // bytes
	for _, c := range []struct {
		sent, allowed, trim, received uint64
	}{
		{0, 0, One, One},
		{slack, 0, One, One},
		{0, slack, One, One},
		{slack * 3 / 2, 0, One + One/64, One + One/64},
		{2 * slack, 0, One + One/32, One + One/32},
		{9 * slack, 0, One + One/32, One + One/8}, // no more is repaid
		{0, slack * 3 / 2, One - One/256, One - One/256},
		{0, 2 * slack, One - One/128, One - One/128},
		{0, 9 * slack, One - One/128, One - One/128}, // no more is made good
	} {
		for received, trim := range map[bool]uint64{false: c.trim, true: c.received} {
			b := NewBudget(32*slack, 0)
			b.Received, b.bytes = received, c.sent
			b.repay(c.allowed)
			if b.Trim != trim || b.bytes != 0 {
				t.Errorf("sent %d of %d, received: %v: trim %d, want %d", c.sent, c.allowed, received, b.Trim, trim)
			}
		}
	}
}

// TestAdvance lets time pass beside votes that expire in ticks 2, 3 and 9.
func TestAdvance(t *testing.T) {
	for _, c := range []struct{ after, load uint64 }{
		{MinTick - 1, 111 * One},
		{MinTick, 110 * One},
		{2 * MinTick, 100 * One},
		{100 * MinTick, 100 * One}, // a stall counts for two ticks
		{stall - 1, 100 * One},
		{stall, 0}, // all have gone
		{3600 * second, 0},
	} {
		b := NewBudget(hundredMbit, 0)
		b.ring[2], b.ring[3], b.ring[9], b.Load = One, 10*One, 100*One, 111*One
		b.advance(c.after)
		if b.Load != c.load || b.start != c.after/MinTick*MinTick {
			t.Errorf("after %d ns: load %d, tick began at %d", c.after, b.Load/One, b.start)
		}
	}
}

func TestShareIsNeverAboveTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBudget(t)
		if b.Share() > b.Limit {
			t.Fatalf("share %d of limit %d", b.Share(), b.Limit)
		}
	})
}

func TestTrimIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBudget(legalLimit.Draw(t, "limit"), 0)
		for range 20 {
			b.bytes = rapid.Uint64Range(0, 2*b.Limit).Draw(t, "bytes")
			b.repay(rapid.Uint64Range(0, 2*b.Limit).Draw(t, "allowed"))
			if b.Trim < One-One/128 || b.Trim > One+One/32 {
				t.Fatalf("trim %d", b.Trim)
			}
		}
	})
}

func TestBudgetDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBudget(t)
		cut := over(product(max(b.Load, b.Unit), b.Trim), b.Unit)
		if cut.Cmp(wide(maxLoad)) > 0 {
			cut = wide(maxLoad)
		}
		same(t, "cut", b.Cut(), cut)
		if share := over(product(b.Limit, b.Unit), cut.Uint64()); share.Cmp(wide(b.Limit)) < 0 {
			same(t, "share", b.Share(), share)
		}
		ns := legalTime.Draw(t, "ns")
		same(t, "allowance", b.allowance(ns), over(product(b.Limit, min(ns, longest)/microsecond), second/microsecond))
		same(t, "tick", b.Tick, wide(max(over(product(8, Segment, second), b.Limit).Uint64(), MinTick)))
		for _, excess := range []uint64{b.slack(), 4 * b.slack()} {
			same(t, "trim", excess*One/b.Limit, over(product(excess, One), b.Limit))
		}
	})
}
