package fair

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSettle has a flow use parts of its share of 100 Mbit/s, 12.5 bytes a us, in 10 ms.
func TestSettle(t *testing.T) {
	const now, age, used = second, 10_000_000, 125_000
	for _, c := range []struct {
		name       string
		flow       Flow
		ends       uint64 // ticks from now until its vote expires
		over, want uint64
	}{
		{"all of its share", Flow{AppLimited: true, vote: One, used: used * One}, 9, 0, 0},
		{"none of it", Flow{AppLimited: true, vote: One}, 9, 0, age * One},
		{"none of it, by a vote of a half", Flow{AppLimited: true, vote: One / 2}, 9, 0, age * One / 2},
		{"none of it, as a timer was late", Flow{vote: One}, 9, 0, 0},
		{"none of it, beside what was", Flow{AppLimited: true, vote: One}, 9, 2_000_000 * One, 12_000_000 * One},
		{"no more than four ticks", Flow{AppLimited: true, vote: One}, 9, 15_000_000 * One, 16_000_000 * One},
		{"its vote has expired", Flow{AppLimited: true, vote: One}, 0, 0, 6_000_000 * One},
		{"more than its vote", Flow{vote: One / 2, used: used * One}, 9, 12_000_000 * One, 7_000_000 * One},
		{"more than there was", Flow{vote: One / 2, used: used * One}, 9, One, 0},
		{"as long ago as can be", Flow{AppLimited: true, since: now - overstayAge}, 0, One, One},
		{"too long ago", Flow{AppLimited: true, since: now - overstayAge - 1}, 0, One, 0},
	} {
		b := NewBudget(hundredMbit, now-MinTick)
		f := c.flow
		f.due, f.over = b.tick+c.ends, c.over
		if f.since == 0 {
			f.since = now - age
		}
		if b.settle(&f, now); f.over != c.want {
			t.Errorf("%s: %d us times One, want %d", c.name, f.over/1000/One, c.want/1000/One)
		}
	}
}

func TestRefund(t *testing.T) {
	const slack = hundredMbit / 32
	for _, c := range []struct{ sent, over, want uint64 }{
		{0, 0, 0},
		{0, 8_000_000 * One, One / 2}, // in four ticks of 4 ms
		{slack, 8_000_000 * One, One / 2},
		{slack * 3 / 2, 8_000_000 * One, One / 4},
		{2 * slack, 8_000_000 * One, 0}, // nothing of the limit was left
		{4 * slack, 8_000_000 * One, 0},
		{0, 16_000_000 * One, One - One/16}, // it counts for something
	} {
		b := NewBudget(hundredMbit, 0)
		b.Sent = c.sent
		if got := b.refund(&Flow{said: One, over: c.over}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestSettleDoesNotOverflow: nor does what is refunded.
func TestSettleDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBudget(t)
		b.tick = rapid.Uint64Range(1, 1<<40).Draw(t, "tick")
		most := overstayTicks * b.Tick * b.Unit
		f := Flow{
			AppLimited: true,
			said:       rapid.Uint64Range(0, b.Unit+b.Unit/8).Draw(t, "said"),
			since:      b.began() - min(b.began(), rapid.Uint64Range(0, 2*overstayAge).Draw(t, "age")),
			used:       rapid.Uint64Range(0, maxUsed).Draw(t, "used"),
			over:       rapid.Uint64Range(0, most).Draw(t, "over"),
			due:        b.tick + rapid.Uint64Range(0, Slots-1).Draw(t, "due"),
		}
		f.vote = f.said
		b.settle(&f, b.began())
		if f.over > most {
			t.Fatalf("an overstay of %d, at most %d", f.over, most)
		}
		if refund := b.refund(&f); refund > f.said-f.said/16 {
			t.Fatalf("%d of %d are refunded", refund, f.said)
		}
		age := b.began() - f.since
		if stood := product(f.vote, age); !stood.IsUint64() {
			t.Fatalf("a vote of %d for %d ns", f.vote, age)
		}
	})
}
