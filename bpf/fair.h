/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The flows below one limit share one fair rate: each votes for how much of its
 * share it uses, and the sum of the votes gives the rate at which each is paced.
 *
 * These are the sums of Go's package fair in the same order and by the same names;
 * docs/pace.md says why they are stable. up is the limit that a budget is a bloc in, NULL
 * where it is a limit itself. Many CPUs charge
 * one budget without a lock: what they share is added and exchanged atomically, and
 * a flow belongs to one socket, whose packets leave one after the other.
 */
#ifndef WEIR_FAIR_H
#define WEIR_FAIR_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

#define ONE (1 << 10)
#define MICROSECOND 1000ULL
#define SECOND 1000000000ULL
#define STALL (2 * SECOND)
#define WINDOW (5 * SECOND) /* over which a limit is held to be kept or not */
#define LONGEST (1000 * SECOND)
#define SEGMENT 1514
#define NEWCOMER (10 * SEGMENT)
#define FIRST_BYTES (32 * NEWCOMER)
#define FIRST_SLACKS 13
#define FIRST_SECONDS 4
#define SWIFT ((1ULL << 16) * SECOND / (60 * MICROSECOND))
#define MAX_USED (1ULL << 63)
#define MAX_GAP (1ULL << 34)
#define MAX_LOAD (1ULL << 31)
#define MAX_PACE 0xfffffffeULL
#define BURST 10000000ULL
#define OVERSTAY_AGE 100000000ULL
#define OVERSTAY_TICKS 4
#define LINE_SPARE 2000000ULL
#define LINE_WAIT (2 * SECOND)
#define LINE_AHEAD 4000000ULL
#define SPACING_STEP 100000000ULL
#define OFFER_LEAST 2
#define OFFER_MOST (NEWCOMER / SEGMENT)

static __always_inline __u64 least(__u64 a, __u64 b) { return a < b ? a : b; }
static __always_inline __u64 most(__u64 a, __u64 b) { return a > b ? a : b; }

/* still says that a pace, or a load, is as good as another. */
static __always_inline bool still(__u64 was, __u64 is) { return (is > was ? is - was : was - is) <= was / 128; }

/* once reads what other CPUs write. */
static __always_inline __u64 once(__u64 *at) { return *(volatile __u64 *)at; }

/* load is the sum of the votes: between two atomic steps of another CPU it may dip below 0. */
static __always_inline __u64 load_of(struct budget *b)
{
	__s64 load = once(&b->load);

	return load < 0 ? 0 : load;
}

/* A limit's unit is known, and a shift is cheaper than a division. */
static __always_inline __u64 cut(struct budget *b)
{
	if (!b->within)
		return most(load_of(b), ONE) * once(&b->trim) / ONE;
	return least(most(load_of(b), b->unit) * once(&b->trim) / b->unit, MAX_LOAD);
}

static __always_inline __u64 share_at(struct budget *b, __u64 load)
{
	return least(b->limit, b->limit * b->unit / load);
}

static __always_inline __u64 share(struct budget *b) { return share_at(b, cut(b)); }

/* inherit takes over the load of a bloc's limit, and whether that was exceeded. */
static __always_inline void inherit(struct budget *b, struct budget *up)
{
	if (!up)
		return;
	b->trim = cut(up);
	b->sent = once(&up->sent);
}

/* meanwhile is what a rate gives in so many ns. */
static __always_inline __u64 meanwhile(__u64 rate, __u64 ns) { return rate * (ns / MICROSECOND) / (SECOND / MICROSECOND); }

static __always_inline __u64 allowance(struct budget *b, __u64 ns) { return meanwhile(b->limit, least(ns, LONGEST)); }

static __always_inline __u64 ticks(struct budget *b, __u64 ns) { return least(ns / b->tick_length + 2, SLOTS - 1); }

/* A vote further ahead than the ring was cast in a budget that is gone. */
static __always_inline bool stands(struct budget *b, struct flow *f)
{
	__u64 tick = once(&b->tick), due = once(&f->due);

	return due > tick && due - tick < SLOTS;
}

static __always_inline __u64 gap(struct budget *b, struct flow *f)
{
	return least((__u64)f->size * f->load / b->unit, MAX_GAP) * SECOND / b->limit;
}

static __always_inline bool newcomer(struct budget *b, struct flow *f)
{
	return f->fresh >= (f->held ? SEGMENT + 1 : NEWCOMER) || f->fresh * cut(b) >= b->tick_bytes;
}

/* slacks is how many of them a limit keeps in mind of what was sent. */
static __always_inline __u64 slacks(struct budget *b) { return b->link == AT_SOCKETS ? 7 : 4; }

/* spared is what may have been sent beyond a limit and is not repaid: the grain of packets, and what buckets were told to collect. */
static __always_inline __u64 spared(struct budget *b) { return 3 * (b->limit / 32) + b->burst; }

/* at_first is fair.Budget.atFirst: what first segments may take of a limit at once, and what buckets were told to collect. */
static __always_inline __u64 at_first(struct budget *b)
{
	return least(most(FIRST_BYTES, FIRST_SLACKS * (b->limit / 32)), FIRST_SECONDS * b->limit) + b->burst;
}

/*
 * overdraw adds a tick to what first segments owe. What passes exactly at the limit takes nothing off it, so a 128th of the limit is
 * forgotten, and what is beyond 3/32 s more than they may take, but not of what one connection may have sent last.
 */
static __always_inline void overdraw(struct budget *b, __u64 allowed, __u64 bytes)
{
	__u64 excess = b->excess + bytes;

	excess -= least(allowed + allowed / 128, excess);
	b->excess = least(excess, at_first(b) + most(3 * (b->limit / 32), NEWCOMER));
}

/* allowed is what a limit lets pass from the beginning of its tick until now. */
static __always_inline __u64 allowed(struct budget *b, __u64 now)
{
	__u64 start = once(&b->start);

	return now > start ? allowance(b, now - start) : 0;
}

/* crowded is fair.Budget.Crowded: so much was sent beyond the limit that TCP's first segments pass no more as they come. */
static __always_inline bool crowded(struct budget *b, __u64 now)
{
	return once(&b->excess) + once(&b->bytes) >= allowed(b, now) + at_first(b);
}

/* binds is fair.Budget.Binds: the limit is one that timers keep, or all of it has been sent by now. */
static __always_inline bool binds(struct budget *b, __u64 now)
{
	return b->limit < SWIFT || once(&b->sent) + once(&b->bytes) >= allowed(b, now) + b->limit / 256;
}

static __always_inline void repay(struct budget *b, __u64 allowed, __u64 bytes)
{
	__u64 slack = b->limit / 32, spare = spared(b), sent = b->sent + bytes, first = at_first(b), trim = ONE;

	sent -= least(allowed, sent);
	sent = least(sent, spare + (slacks(b) - 3) * slack);
	if (sent > spare)
		trim += (sent - spare) * ONE / b->limit;
	else if (sent < slack)
		trim -= (slack - sent) * ONE / b->limit / 4;
	if (b->excess > first)
		trim += least(b->excess - first, 3 * (b->limit / 32)) * ONE / b->limit;
	b->sent = sent;
	b->trim = trim;
}

/*
 * tally keeps the rate of the last whole window and of the busiest one, in bytes a
 * second. A window ends with the first tick after its time; what the ended tick had
 * came before that.
 */
static __always_inline void tally(struct budget *b, __u64 now, __u64 bytes)
{
	__u64 length = now - b->window;

	b->total += bytes;
	b->in_window += bytes;
	if (length < WINDOW)
		return;
	b->last = b->window ? b->in_window * (SECOND / MICROSECOND) / (length / MICROSECOND) : 0;
	b->busiest = most(b->busiest, b->last);
	b->window = now;
	b->in_window = 0;
}

/* slice is the time's worth of the share that a bucket gives a CPU at once, ns. */
static __always_inline __u64 slice(struct budget *b) { return least(b->slice, BURST); }

/* appraise finds what the share means for the bucket, so that no packet divides. */
static __always_inline void appraise(struct budget *b)
{
	__u64 rate = most(share(b), 1);

	b->price = SECOND * FRACTION * ONE / rate + 1;
	b->chunk = rate * slice(b) / SECOND;
}

/*
 * end_tick ends the tick; of many CPUs that see that it is over, one does. It is global, as
 * charge is: so the kernel proves them once, and not for each path that leads to them.
 */
__noinline int end_tick(struct budget *b, __u64 now)
{
	__u64 start, length, allowed, bytes, tick, n, i;
	__s64 expired;

	if (!b)
		return 0;
	start = once(&b->start);
	if (now < start + b->tick_length)
		return 0;
	length = now - start;
	n = length / b->tick_length;
	if (__sync_val_compare_and_swap(&b->start, start, start + n * b->tick_length) != start)
		return 0;
	bytes = __sync_lock_test_and_set(&b->bytes, 0);
	tally(b, now, bytes);
	allowed = allowance(b, n * b->tick_length);
	overdraw(b, allowed, bytes);
	repay(b, allowed, bytes);
	if (n > 2 && length < STALL)
		n = 2;
	tick = b->tick;
#pragma clang loop unroll(disable)
	for (i = 0; i < SLOTS; i++) {
		if (i >= n)
			break;
		*(volatile __u64 *)&b->tick = ++tick;
		expired = __sync_lock_test_and_set(&b->ring[tick % SLOTS], 0);
		__sync_fetch_and_sub(&b->load, expired);
	}
	appraise(b);
	return 0;
}

/* advance ends the tick if it is over, which is seldom: a call costs more than the look. */
static __always_inline void advance(struct budget *b, __u64 now)
{
	if (now >= once(&b->start) + b->tick_length)
		end_tick(b, now);
}

/*
 * follow goes on to the tick of a bloc's limit, which alone knows what a stall is; of
 * many CPUs that see it, one does.
 */
static __always_inline void follow(struct budget *b, struct budget *up, __u64 now)
{
	__u64 tick = once(&up->tick), from = once(&b->tick), i;
	__s64 expired;

	inherit(b, up);
	if ((__s64)(tick - from) <= 0 || __sync_val_compare_and_swap(&b->tick, from, tick) != from)
		return;
	tally(b, now, __sync_lock_test_and_set(&b->bytes, 0));
#pragma clang loop unroll(disable)
	for (i = 0; i < SLOTS; i++) {
		if (i >= tick - from)
			break;
		expired = __sync_lock_test_and_set(&b->ring[(tick - i) % SLOTS], 0);
		__sync_fetch_and_sub(&b->load, expired);
	}
	appraise(b);
}

/* pass counts bytes in the running tick, of a bloc's limit too. */
static __always_inline void pass(struct budget *b, struct budget *up, __u64 now, __u64 wire)
{
	if (up) {
		advance(up, now);
		__sync_fetch_and_add(&up->bytes, wire);
		follow(b, up, now);
	} else {
		advance(b, now);
	}
	__sync_fetch_and_add(&b->bytes, wire);
}

/* note remembers for how long a bloc counts by what its flows have voted: in the mean. */
static __always_inline void note(struct budget *b, __u64 vote, __u64 due)
{
	__u64 load = load_of(b), stand = most(b->stand, once(&b->tick) * ONE);

	due *= ONE;
	if (due > stand)
		stand += (due - stand) * least(4 * vote, load) / most(load, 1);
	b->stand = stand;
}

/*
 * begins_vote lets one of the CPUs that would vote for a flow at once do so. The others go on: what they had to say is
 * being said. Two that took the old vote out, or put a new one in, would have it count twice until it expires.
 */
static __always_inline bool begins_vote(struct flow *f) { return !__sync_lock_test_and_set(&f->voting, 1); }
static __always_inline void ends_vote(struct flow *f) { __sync_lock_test_and_set(&f->voting, 0); }

/*
 * cast replaces the vote of a flow whose vote has begun. Each is read once: where another CPU ends the tick meanwhile, the
 * ring and the load lose and gain the same, so that the load is right again when the votes of that moment have expired.
 */
static __always_inline void cast(struct budget *b, struct flow *f, __u64 vote, __u64 hold)
{
	__u64 tick = once(&b->tick), due = once(&f->due), old = once(&f->vote);

	if (due > tick && due - tick < SLOTS) {
		__sync_fetch_and_sub(&b->ring[due % SLOTS], old);
		__sync_fetch_and_sub(&b->load, old);
	}
	due = tick + hold;
	*(volatile __u64 *)&f->vote = vote;
	*(volatile __u64 *)&f->due = due;
	__sync_fetch_and_add(&b->ring[due % SLOTS], vote);
	__sync_fetch_and_add(&b->load, vote);
	if (b->within)
		note(b, vote, due);
}

/* delegate lets a bloc vote in its limit: as its flows did, and no more than its weight. */
static __always_inline void delegate(struct budget *b, struct budget *up)
{
	__u64 tick = once(&b->tick), vote = least(load_of(b), b->unit);
	__u64 due = most(b->stand / ONE, tick + 2);

	if (vote == once(&b->vote.vote) && due <= once(&b->vote.due))
		return;
	if (!begins_vote(&b->vote))
		return;
	cast(up, &b->vote, vote, least(due - tick, SLOTS - 1));
	ends_vote(&b->vote);
}

/* part is the part of its share that a flow has used since its vote, age ns ago, twice that at most. */
static __always_inline __u64 part(struct budget *b, struct flow *f, __u64 age)
{
	return least(f->used / most(allowance(b, age), 1), 2 * b->unit);
}

/* settle adds to a flow's overstay how much longer its vote has stood than it used its share, or takes off how much less. */
static __always_inline void settle(struct budget *b, struct budget *up, struct flow *f, __u64 now)
{
	__u64 age = now > f->since ? now - f->since : 0, ends, stood, used;

	if (age > OVERSTAY_AGE) {
		f->over = 0;
		return;
	}
	ends = once(up ? &up->start : &b->start) + (f->due - once(&b->tick)) * b->tick_length;
	stood = f->vote * least(most(ends, f->since) - f->since, age);
	used = part(b, f, age) * age;
	if (stood < used)
		f->over -= least(used - stood, f->over);
	else if (f->app_limited)
		f->over = least(f->over + stood - used, OVERSTAY_TICKS * b->tick_length * b->unit);
}

/* refund is what a flow's next vote is less than what it says: nothing where the limit has not been left unused. */
static __always_inline __u64 refund(struct budget *b, struct flow *f)
{
	__u64 slack = b->limit / 32, unused = 2 * slack - least(once(&b->sent), 2 * slack);

	return least(f->said - f->said / 16, f->over / (OVERSTAY_TICKS * b->tick_length)) * least(unused, slack) / slack;
}

static __always_inline void elect(struct budget *b, struct budget *up, struct flow *f, __u64 now, __u64 said, __u64 hold)
{
	settle(b, up, f, now);
	f->said = said;
	cast(b, f, said - refund(b, f), ticks(b, hold + 2 * gap(b, f)));
	f->since = now;
	f->used = f->fresh = 0;
}

static __always_inline __u64 use(struct budget *b, struct flow *f, __u64 age)
{
	__u64 u = part(b, f, age);

	f->measured = u;
	u = least(u, f->exact ? b->unit : b->unit + b->unit / 8);
	if (f->held == FILLS || (f->held && u >= b->unit / 2))
		u = b->unit;
	if (stands(b, f) && u < f->said - f->said / 4 && !f->low) {
		f->low = 1;
		return f->said;
	}
	f->low = 0;
	return u;
}

/*
 * space_out is fair.Spacing.Answer: when somebody answers whose line is due, after it needed so many ns for what came. Who loses
 * a race against another CPU answers at the same time.
 */
static __always_inline __u64 space_out(struct budget *b, __u64 due, __u64 took, __u64 load, __u64 may, __u64 waited)
{
	__u64 next = once(&b->spaced), at = most(due, next);

	if (at > due + may)
		return due;
	if (at > due + waited + SPACING_STEP)
		return due + waited + SPACING_STEP;
	__sync_val_compare_and_swap(&b->spaced, next, at + took * ONE / load * 7 / 8);
	return at;
}

/* spare is what a line of a share makes up for after a pause, ns. */
static __always_inline __u64 spare(__u64 share) { return most(LINE_SPARE, 2 * SEGMENT * SECOND / share); }

/* lag is fair.Lag: for how long an answer may wait beyond its line, ns. */
static __always_inline __u64 lag(__u64 share) { return spare(share) / 2; }

/* away is fair.Way.Measure: what a shortest round trip is taken for from now on, where they usually take that long, ns. */
static __always_inline __u64 away(__u64 nearest, __u64 usual, bool late)
{
	return least(late ? nearest + nearest / 16 + 1 : nearest, 2 * usual);
}

/* holds is fair.Line.Holds: a connection has had all of its share. What comes first is what it was offered with its handshake. */
static __always_inline bool holds(__u64 due, __u64 now, __u64 share) { return !due || now < due + spare(share); }

/*
 * expected is fair.Line.Expect: when a line of a share would have brought all that a connection got, of which it has so
 * many bytes now.
 */
static __always_inline __u64 expected(__u64 due, __u64 now, __u64 wire, __u64 share)
{
	if (!due)
		due = now;
	return least(most(due, now - least(spare(share), now)) + wire * SECOND / share, now + LINE_WAIT);
}

/*
 * may_offer is fair.Offers.Segments: how many segments the next connection is offered with its handshake. Who loses a
 * race against another CPU offers as if that had not.
 */
static __always_inline __u64 may_offer(struct budget *b, __u64 now)
{
	__u64 each = SEGMENT * SECOND / b->limit, until = most(once(&b->offered), now), part = b->stream_depth / 4;
	__u64 n = least(most((part - least(part, until - now)) / each, OFFER_LEAST), OFFER_MOST);

	b->offered = least(until + n * each, now + b->stream_depth);
	return n;
}

/* say lets a flow vote if it has something new to say. */
static __always_inline void say(struct budget *b, struct budget *up, struct flow *f, __u64 now)
{
	__u64 age = now > f->since ? now - f->since : 0, window = most(b->tick_length, f->window), said;

	if (!stands(b, f) && f->said >= b->unit / 2 && f->size >= SEGMENT) {
		elect(b, up, f, now, f->said, window);
	} else if (age >= window) {
		said = use(b, f, age);
		elect(b, up, f, now, said, f->low ? window : age + age / 4); /* what is not believed is asked again soon */
	} else if ((!stands(b, f) || f->said < b->unit / 4) && newcomer(b, f)) {
		elect(b, up, f, now, b->unit, window);
	}
}

/* ask is say, but for most packets, which come while the flow's vote stands and is young. */
static __always_inline void ask(struct budget *b, struct budget *up, struct flow *f, __u64 now)
{
	__u64 since = once(&f->since), window = most(b->tick_length, f->window);

	if (stands(b, f) && f->said >= b->unit / 4 && now < since + window)
		return;
	if (!begins_vote(f))
		return;
	say(b, up, f, now);
	ends_vote(f);
}

/* charge is fair.Budget.Packet: a flow sends so many bytes on the wire now. */
__noinline int charge(struct budget *b, struct budget *up, struct flow *f, __u64 now, __u64 wire)
{
	if (!b || !f)
		return 0;
	pass(b, up, now, wire);
	f->size = wire;
	f->fresh += wire;
	if (!f->load)
		f->load = cut(b);
	if (!f->since)
		f->since = now;
	ask(b, up, f, now);
	f->used = least(f->used + wire * f->load, MAX_USED);
	if (up)
		delegate(b, up);
	return 0;
}

/*
 * prepay is fair.Budget.Prepay: a flow is charged for so many bytes beside its packet, that it may never send. So they make
 * it no newcomer.
 */
static __always_inline void prepay(struct budget *b, struct budget *up, struct flow *f, __u64 bytes)
{
	if (up)
		__sync_fetch_and_add(&up->bytes, bytes);
	__sync_fetch_and_add(&b->bytes, bytes);
	f->used = least(f->used + bytes * f->load, MAX_USED);
}

/* stay lets a flow's vote stand for so many ns at least, until when the flow sends no more. */
static __always_inline void stay(struct budget *b, struct flow *f, __u64 ns)
{
	__u64 need = ticks(b, ns), due = once(&f->due);

	if (!stands(b, f) || due - once(&b->tick) >= need || !begins_vote(f))
		return;
	cast(b, f, f->vote, need);
	ends_vote(f);
}

/* cut_pace is the first part of fair.Budget.Pace: the flow is to have its share now. */
static __always_inline void cut_pace(struct budget *b, struct flow *f)
{
	f->load = cut(b);
	stay(b, f, 2 * gap(b, f));
}

/* pace_of is fair.Budget.Pace: the flow's share, in bytes per second on the wire. */
static __always_inline __u64 pace_of(struct budget *b, struct flow *f)
{
	cut_pace(b, f);
	return most(1, least(share_at(b, f->load), MAX_PACE));
}

#endif
