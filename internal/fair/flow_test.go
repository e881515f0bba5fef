package fair

import (
	"testing"

	"pgregory.net/rapid"
)

// drawFlow is a flow of a budget with a pace that was cut and a packet sent.
func drawFlow(t *rapid.T, b *Budget) *Flow {
	return &Flow{size: legalPacket.Draw(t, "size"), load: b.Cut()}
}

func TestPace(t *testing.T) {
	for _, c := range []struct{ limit, load, want uint64 }{
		{hundredMbit, 4 * One, hundredMbit / 4},
		{MaxLimit, One, MaxPace},                      // all that a socket can be told
		{MaxLimit, 4 * One, MaxLimit / 4},             // four of them have all of it
		{MinLimit, MaxFlows * One, 1},                 // never 0
		{hundredMbit, One / 2, hundredMbit},           // never fewer than one flow
		{hundredMbit, 1000 * One, hundredMbit / 1000}, // as many as there are
	} {
		b := NewBudget(c.limit, 0)
		b.Load = c.load
		f := Flow{}
		if got := b.Pace(&f); got != c.want {
			t.Errorf("limit %d, load %d: pace %d, want %d", c.limit, c.load/One, got, c.want)
		}
	}
}

// TestVote has a flow whose last packets, at a pace cut for so many flows, were a
// part of its share in 10 ms of 100 Mbit/s: 125,000 bytes.
func TestVote(t *testing.T) {
	const now = second
	for _, c := range []struct {
		name string
		flow Flow
		load uint64
		want uint64
	}{
		{"greedy", Flow{used: 125_000 * One, since: now - 10_000_000}, 0, One},
		{"greedy among ten", Flow{used: 12_500 * 10 * One, since: now - 10_000_000}, 9 * One, One},
		{"wants a third", Flow{used: 41_667 * One, since: now - 10_000_000}, 0, One / 3},
		{"sends too much", Flow{used: 999_999 * One, since: now - 10_000_000}, 0, One + One/8},
		{"sends too much, in a bucket", Flow{Exact: true, used: 999_999 * One, since: now - 10_000_000}, 0, One},
		{"its window is not over", Flow{Window: 20_000_000, used: 125_000 * One, since: now - 10_000_000}, 0, 0},
		{"newcomer with few bytes", Flow{}, 0, 0},
		{"newcomer with ten segments", Flow{fresh: 9 * Segment}, 0, One},
		{"newcomer among a hundred", Flow{}, 100 * One, One},
		{"newcomer that is held, with a segment", Flow{Held: true}, 0, 0},
		{"newcomer that is held, with more", Flow{Held: true, fresh: 1}, 0, One},
		{"newcomer that fills what it asks for, with more", Flow{Fills: true, fresh: 1}, 0, One},
		{"back from a pause", Flow{said: One, vote: One, since: now - 1_000_000}, 0, One},
		{"was modest before it", Flow{said: One / 3, vote: One / 3, since: now - 1_000_000}, 0, 0},
	} {
		b := NewBudget(hundredMbit, now)
		b.Load = c.load
		f := c.flow
		b.Packet(&f, now, Segment)
		var got uint64
		if b.stands(&f) {
			got = f.vote
		}
		if got != c.want || b.Load != c.load+c.want {
			t.Errorf("%s: vote %d, want %d; load %d", c.name, got, c.want, b.Load-c.load)
		}
	}
}

// TestFallIsBelievedTheSecondTime lets a greedy flow send half of its share.
func TestFallIsBelievedTheSecondTime(t *testing.T) {
	b := NewBudget(hundredMbit, 0)
	f := Flow{said: One, vote: One, due: 9}
	for i, want := range []uint64{One, One / 2, One / 2} {
		f.used = 62_500 * One
		if f.said = b.use(&f, 10_000_000); f.said != want {
			t.Errorf("window %d: vote %d, want %d", i, f.said, want)
		}
	}
}

// TestFallIsAskedAgainSoon has a flow send its first ten segments, and after a second in which all are silent a word. A
// greedy one that begins then has the whole limit within 100 ms, though nobody else says that the first wants no more.
func TestFallIsAskedAgainSoon(t *testing.T) {
	b := NewBudget(hundredMbit, 0)
	now, modest, greedy := uint64(1), Flow{}, Flow{}
	for range 10 {
		b.Packet(&modest, now, Segment)
		now += 1000
	}
	now += second
	b.Packet(&modest, now, 66)
	if b.Load != One {
		t.Fatalf("load %d after a word, want %d: a fall is not believed at once", b.Load, One)
	}
	for end := now + 100_000_000; now < end; now += Segment * second / b.Pace(&greedy) {
		b.Packet(&greedy, now, Segment)
	}
	if got := b.Share(); got < hundredMbit*95/100 {
		t.Errorf("after 100 ms its share is %d bytes/s, want %d", got, hundredMbit)
	}
}

// TestVoteExpires sends one packet after a greedy flow has gone: 5/4 of its 10 ms
// and two packets of 0.12 ms are three ticks, and two more are for the rounding.
func TestVoteExpires(t *testing.T) {
	const now = second
	for _, c := range []struct {
		ticks uint64
		load  uint64
	}{{4, One}, {5, 0}} {
		b := NewBudget(hundredMbit, now)
		f := Flow{used: 125_000 * One, since: now - 10_000_000}
		b.Packet(&f, now, Segment)
		for i := range c.ticks {
			b.advance(now + (i+1)*MinTick)
		}
		if b.Load != c.load {
			t.Errorf("after %d ticks: load %d", c.ticks, b.Load)
		}
	}
}

// TestPaceProlongsTheVote cuts a pace at which the next packet comes after the vote
// would have expired.
func TestPaceProlongsTheVote(t *testing.T) {
	b := NewBudget(hundredMbit, 0)
	f := Flow{size: Segment}
	b.cast(&f, One, 2)
	b.Load += 99 * One
	b.Pace(&f)
	if twice := 2 * uint64(100*Segment) * second / hundredMbit; f.due*b.Tick < twice {
		t.Errorf("the vote stands for %d ns, two packets take %d", f.due*b.Tick, twice)
	}
}

// TestLoadIsTheSumOfTheVotes lets flows do anything in any order, in a limit or a bloc.
func TestLoadIsTheSumOfTheVotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Uint64Range(1, MaxTime/2).Draw(t, "start")
		b := NewBudget(legalLimit.Draw(t, "limit"), now)
		if weight := rapid.Uint64Range(0, MaxWeight).Draw(t, "weight"); weight > 0 {
			b = b.NewBloc(weight)
		}
		flows := make([]Flow, rapid.IntRange(1, 6).Draw(t, "flows"))
		for i := range flows {
			flows[i].Exact, flows[i].AppLimited = rapid.Bool().Draw(t, "exact"), rapid.Bool().Draw(t, "app-limited")
			flows[i].Held = rapid.Bool().Draw(t, "held")
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			f := &flows[rapid.IntRange(0, len(flows)-1).Draw(t, "flow")]
			now += rapid.OneOf(rapid.Uint64Range(0, 3*b.Tick), rapid.Uint64Range(0, 5000*second)).Draw(t, "pause")
			if rapid.Bool().Draw(t, "acknowledged") {
				f.Window = rapid.Uint64Range(0, 10*second).Draw(t, "window")
				if pace := b.Pace(f); pace == 0 || pace > min(b.Limit, MaxPace) {
					t.Fatalf("pace %d at limit %d", pace, b.Limit)
				}
			} else {
				b.Packet(f, now, legalPacket.Draw(t, "wire"))
			}
			if rapid.Bool().Draw(t, "answers wait") {
				b.Stay(f, rapid.Uint64Range(0, 10*second).Draw(t, "for"))
			}
			holdsVotes(t, b, flows, b.Unit)
		}
	})
}

func holdsVotes(t *rapid.T, b *Budget, flows []Flow, unit uint64) {
	var votes, ring uint64
	for i := range flows {
		if b.stands(&flows[i]) {
			votes += flows[i].vote
		}
	}
	for _, v := range b.ring {
		ring += v
	}
	if b.Load != votes || b.Load != ring {
		t.Fatalf("load %d, the votes %d, the ring %d", b.Load, votes, ring)
	}
	if b.Load > uint64(len(flows))*(unit+unit/8) {
		t.Fatalf("load %d of %d flows", b.Load, len(flows))
	}
	if b.limit != nil {
		holdsVotes(t, b.limit, []Flow{b.vote}, unit)
	}
	if b.Share() > b.Limit {
		t.Fatalf("share %d of limit %d", b.Share(), b.Limit)
	}
}

func TestFlowDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBudget(t)
		f := drawFlow(t, b)
		if pace := over(product(b.Limit, b.Unit), f.load); pace.Cmp(wide(min(b.Limit, MaxPace))) < 0 {
			same(t, "pace", b.Pace(f), wide(max(1, pace.Uint64())))
		}
		bytes := over(product(f.size, f.load), b.Unit)
		same(t, "gap", b.gap(f), over(product(min(bytes.Uint64(), maxGap), second), b.Limit))
		if f.fresh < Newcomer {
			counts := product(f.fresh, b.Cut()).Cmp(product(b.allowance(b.Tick), b.Unit)) >= 0
			if b.newcomer(f) != counts {
				t.Fatalf("newcomer is %v after %d bytes", !counts, f.fresh)
			}
		}

		// The sum stops growing where it is full, and does not pass it by overflow.
		f.said, f.due, f.since = b.Unit, b.tick+1, b.start
		f.used = rapid.Uint64Range(0, maxUsed).Draw(t, "used")
		sum := wide(f.used)
		sum.Add(sum, product(f.size, f.load))
		if sum.Cmp(wide(maxUsed)) > 0 {
			sum = wide(maxUsed)
		}
		f.Window = second
		b.Packet(f, b.start, f.size)
		same(t, "used", f.used, sum)
	})
}

// TestGapIsCutWhereTheRingEnds: no vote stands longer than the ring, so that what
// is cut from a gap is never missed.
func TestGapIsCutWhereTheRingEnds(t *testing.T) {
	for _, limit := range []uint64{MinLimit, hundredMbit, MaxLimit} {
		b := NewBudget(limit, 0)
		if longestGap := uint64(maxGap) * second / limit; b.ticks(2*longestGap) != Slots-1 {
			t.Errorf("limit %d: a gap of %d ns is %d ticks", limit, longestGap, b.ticks(2*longestGap))
		}
	}
}
