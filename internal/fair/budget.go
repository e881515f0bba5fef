package fair

// One is one greedy flow of weight 1, in the fixed point of votes, loads and trims.
const One = 1 << 10

// What is legal. Beyond it sums may overflow.
const (
	MinLimit  = 8_000          // bytes/s: 64 kbit/s
	MaxLimit  = 12_500_000_000 // bytes/s: 100 Gbit/s
	MaxFlows  = 1 << 20        // of one budget together, each times its weight
	MaxWeight = 100            // of a bloc
	MaxPacket = 1 << 20        // bytes: twice what BIG TCP hands to a device at once
	MaxTime   = 1 << 59        // ns: 18 years after the clock began
)

const (
	// MinTick is the least resolution at which votes expire, ns.
	MinTick = 4_000_000
	// Slots is the number of ticks of which votes are kept: one stands for fewer.
	Slots = 512
	// Segment is a full packet of MTU 1500 on the wire, bytes.
	Segment = 1514
	// MaxPace is the most that a BPF program can give as SO_MAX_PACING_RATE, which has
	// 32 bits there, bytes/s: 34 Gbit/s. All ones would mean no pace at all.
	MaxPace = 1<<32 - 2
)

const (
	microsecond = 1_000
	second      = 1_000_000_000
	stall       = 2 * second    // a longer time without any packet is no stall, ns
	longest     = 1000 * second // no sum looks further back, ns
)

// Budget is one limit and what is known of the flows below it. Bytes are those on
// the wire, Ethernet header included.
type Budget struct {
	Limit     uint64 // bytes/s, MinLimit to MaxLimit
	Tick      uint64 // resolution at which votes expire, ns
	TickBytes uint64 // what the limit lets pass in a tick, bytes times One
	Price     uint64 // of [One] bytes in a bucket, by the share when the tick began, ns times 16
	Chunk     uint64 // what a bucket gives a CPU at once, likewise, bytes
	Depth     uint64 // for how long the bucket of datagrams collects, ns
	Streams   uint64 // and that of TCP that nobody paces
	Slice     uint64 // the time's worth of its share that the former gives a CPU at once, ns
	Unit      uint64 // the vote of a greedy flow: One times the weight
	Load      uint64 // sum of the standing votes: the effective number of greedy flows, times Unit
	// Trim is a factor of the load, times One: up to 1 + 1/32, or 1 + 4/32, repays, and 3/32 more first segments; 1 - 1/128 catches up. Of a
	// bloc it is the load of its limit.
	Trim uint64
	// Received says that it is of what sockets receive. All TCP goes through its bucket, which would stay empty for good
	// where what emptied it was forgotten: so more is kept in mind, 5/32 s of the limit, and a third of the bucket is left.
	Received bool
	Sent     uint64 // bytes beyond the limit: 2/32 s of it are none, 0 and 4/32, or 7/32, the ends, above which is the burst

	tick  uint64        // number of the running tick
	start uint64        // when it began, ns
	ring  [Slots]uint64 // votes by the tick in which they expire
	bytes uint64        // sent since the tick began
	burst uint64        // bytes that its buckets collect, if that was told
	// excess is bytes beyond the limit, too, from none on, of which little is forgotten: so much first segments still owe.
	excess uint64

	limit *Budget // that it is a bloc in; nil: it is a limit itself
	stand uint64  // tick until which its votes stand in the mean, times One
	vote  Flow    // its own in the limit
}

// NewBudget returns the budget of a limit in bytes per second, which nobody uses
// yet. Its ticks begin now, in ns.
func NewBudget(limit, now uint64) *Budget {
	b := &Budget{
		Limit: limit,
		Tick:  max(MinTick, 8*Segment*second/limit),
		Unit:  One,
		Trim:  One,
		tick:  1,
		start: now,

		Depth:   depth(limit),
		Streams: StreamBurst,
		Slice:   sliceOf(Burst, 1),
	}
	b.TickBytes = b.allowance(b.Tick) * One
	b.appraise()
	if limit < Swift {
		b.Sent = 2 * b.slack()
	}
	return b
}

// Collect has the buckets collect so many bytes of the limit, and no more.
func (b *Budget) Collect(burst uint64) {
	// In two steps, as the nanoseconds of some bytes at 1 byte/s would not fit.
	b.burst = burst
	b.Depth = min(burst/b.Limit*second+burst%b.Limit*second/b.Limit, MaxDepth)
	b.Streams = b.Depth
	b.Spread(1)
}

// Spread has so many CPUs spend what the bucket gives ahead.
func (b *Budget) Spread(cpus uint64) {
	b.Slice = sliceOf(b.Depth, cpus)
	b.appraise()
}

// Share returns the fair rate of a flow, in bytes per second: never more than the
// limit.
func (b *Budget) Share() uint64 { return b.shareAt(b.Cut()) }

// shareAt is the share at some load.
func (b *Budget) shareAt(load uint64) uint64 { return min(b.Limit, b.Limit*b.Unit/load) }

// Cut is the load for which paces are cut, never less than one flow, and trimmed: of a
// bloc, what its flows are times what it is one of.
func (b *Budget) Cut() uint64 { return min(max(b.Load, b.Unit)*b.Trim/b.Unit, maxLoad) }

// allowance is what the limit lets pass in a time in ns, in bytes.
func (b *Budget) allowance(ns uint64) uint64 {
	return b.Limit * (min(ns, longest) / microsecond) / (second / microsecond)
}

// slack is the grain of packets, for which nobody pays: 1/32 s of the limit, in bytes.
func (b *Budget) slack() uint64 { return b.Limit / 32 }

// ticks is for how many ticks a vote stands that shall stand for a time in ns.
func (b *Budget) ticks(ns uint64) uint64 { return min(ns/b.Tick+2, Slots-1) }

// advance ends the tick if it is over, and with it the votes that expire. A time
// in which no packet came at all is a stall more often than everybody's departure:
// it counts for two ticks, unless it is longer than any stall.
func (b *Budget) advance(now uint64) {
	length := now - b.start
	n := length / b.Tick
	if n == 0 {
		return
	}
	b.start += n * b.Tick
	allowed := b.allowance(n * b.Tick)
	b.overdraw(allowed)
	b.repay(allowed)
	if n > 2 && length < stall {
		n = 2
	}
	for range min(n, Slots) {
		b.tick++
		b.Load -= b.ring[b.tick%Slots]
		b.ring[b.tick%Slots] = 0
	}
	b.appraise()
}

// appraise finds what the share means for a bucket.
func (b *Budget) appraise() {
	share := max(b.Share(), 1)
	b.Price, b.Chunk = price(share), share*b.Slice/second
}

// began is when the running tick of its limit did, ns.
func (b *Budget) began() uint64 {
	if b.limit != nil {
		return b.limit.start
	}
	return b.start
}

// slacks is how many of them it keeps in mind of what was sent.
func (b *Budget) slacks() uint64 {
	if b.Received {
		return 7
	}
	return 4
}

// beyond is what was sent of its limit, 2 slacks where that was all of it.
func (b *Budget) beyond() uint64 {
	if b.limit != nil {
		return b.limit.Sent
	}
	return b.Sent
}

// spared is what may have been sent beyond the limit and is not repaid: the grain of packets, and what the buckets were told
// to collect. It was left unused before.
func (b *Budget) spared() uint64 { return 3*b.slack() + b.burst }

// What TCP's first segments, which nobody can pace, may take of a limit at once: ten segments of 32 connections, which are 388 ms below
// 10 Mbit/s; of the limit no more than these seconds, and no less than these 32nds of one.
const (
	firstBytes   = 32 * Newcomer
	firstSlacks  = 13
	firstSeconds = 4
)

// atFirst is how many bytes that is, with what the buckets were told to collect.
func (b *Budget) atFirst() uint64 {
	return min(max(firstBytes, firstSlacks*b.slack()), firstSeconds*b.Limit) + b.burst
}

// Crowded says that so much was sent beyond the limit by now, in ns, that the first segments of connections pass no more as they
// come, but through the bucket for what nobody paces. Unlike what a trim repays it is known within a tick, and not forgotten as
// soon as the limit is met for one.
func (b *Budget) Crowded(now uint64) bool {
	if b.limit != nil {
		return b.limit.Crowded(now)
	}
	return b.excess+b.bytes >= b.allowance(now-min(b.start, now))+b.atFirst()
}

// Swift is from what limit on, in bytes per second, TCP's timers can not keep a pace: a packet of 64 KiB every 60 us.
const Swift = (64 << 10) * second / 60_000

// Binds says that connections have to be paced now, in ns: timers can keep the limit, or all of it has been sent but for a grain
// of 1/256 s. A swift one has not been used when it begins, so that who does not use all of it is never paced.
func (b *Budget) Binds(now uint64) bool {
	if b.limit != nil {
		return b.limit.Binds(now)
	}
	return b.Limit < Swift || b.Sent+b.bytes >= b.allowance(now-min(b.start, now))+b.Limit/256
}

// overdraw adds what was sent to what first segments owe, where the limit allowed so many bytes. What passes exactly at the limit
// takes nothing off it, so a 128th of the limit is forgotten: those who come later do not have to pay for ever. So is what is beyond
// 3/32 s more than they may take, but not of what one connection may have sent last.
func (b *Budget) overdraw(allowed uint64) {
	excess := b.excess + b.bytes
	excess -= min(allowed+allowed/128, excess)
	b.excess = min(excess, b.atFirst()+max(3*b.slack(), Newcomer))
}

// repay steers by the sum of what was sent, where the limit allowed so many bytes:
// what went beyond it, or was lost by late timers, becomes a trim. So does what first segments took beyond what they may at once.
func (b *Budget) repay(allowed uint64) {
	slack, spared := b.slack(), b.spared()
	sent := b.Sent + b.bytes
	sent -= min(allowed, sent)
	sent = min(sent, spared+(b.slacks()-3)*slack)
	b.Sent, b.bytes, b.Trim = sent, 0, One
	switch {
	case sent > spared:
		b.Trim += (sent - spared) * One / b.Limit
	case sent < slack:
		b.Trim -= (slack - sent) * One / b.Limit / 4
	}
	if first := b.atFirst(); b.excess > first {
		b.Trim += min(b.excess-first, 3*b.slack()) * One / b.Limit
	}
}
