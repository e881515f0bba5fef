// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * depart: gives a packet that leaves a link the time at which it may, and the fq on that
 * link keeps it until then.
 *
 * link_egress goes on here, or limit does, with what link_egress knows in cb (limiter.h). Each
 * limit is a line of packets: one begins when the one before it has passed at the limit's
 * rate. A packet below several is charged to each and leaves at the latest of their times,
 * and never before the one that it had.
 *
 * A packet of a flow that sends little, and has none that waits, goes ahead of what waits: it
 * leaves at once and the line is charged as ever, so what comes later makes up for it. All
 * that goes ahead is a part of the limit, and no packet overtakes another of its flow.
 *
 * What waits is bounded: a packet that would wait too long is dropped, and then none of its
 * limits is charged; one that waits for long is marked as congestion where its ends know
 * that. What carries nothing but acknowledgements is charged and never waits.
 *
 * No atomic operations are in here that fetch: kernels before 5.12 load it too. Each limit
 * has a lock, and what is charged under it is exact. A packet takes its place in one after
 * the other, and gives back those that it has where one refuses it; what comes between on
 * another CPU has its time by then, so that place may stay empty.
 */
#include "departures.h"
#include "headers.h"
#include "limiter.h"
#include "links.h"
#include "waiting.h"

#include <bpf/bpf_endian.h>

#define MICROSECONDS 1000000ULL /* in a second */
#define WINDOW (5 * SECOND)	 /* over which a limit is held to be kept or not */

/* From here on what waits is marked. */
#define PATIENCE (5 * MILLISECOND)
/*
 * What nobody asked for so long ago may still be had: a timer may come that late, and
 * what is not sent by then would be lost.
 */
#define SLACK (2 * MILLISECOND)

/* What is larger than a frame does not go ahead. */
#define FRAME 1522
/* What may go ahead is such a part of the limit. */
#define PART 8
/* Flows are counted for so long, in powers of two of ns: 134 ms, longer than a line. */
#define ROUND 27

/* A TCP packet of this size has hardly room for data beside its headers. */
#define BARE 114

/* Verdicts of tc. */
#define NEXT -1
#define DROP 2

/*
 * The flows of all limits, by a hash of both. Where two meet, they go ahead less often: one
 * flow beside 32 others meets one of them 1 time in 500.
 */
#define TURNS (1 << 14)
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TURNS);
	__type(key, __u32);
	__type(value, struct turn);
} turns SEC(".maps");

enum wait {
	NOT_IN,	  /* the packet is not in that line */
	SHORT,
	LONG,	  /* worth a mark */
	TOO_LONG, /* worth a drop, which is counted */
};

/*
 * tally keeps the rate of the last whole window and of the busiest one, in bytes a second. A
 * window ends with the first packet that leaves after its time.
 */
static __always_inline void tally(struct departure *d, __u64 at, __u32 wire)
{
	__s64 length = at - d->window;

	if (length >= (__s64)WINDOW) {
		d->last = d->window ? d->in_window * MICROSECONDS / ((__u64)length * MICROSECONDS / SECOND) : 0;
		d->busiest = most(d->busiest, d->last);
		d->window = at;
		d->in_window = 0;
	}
	d->in_window += wire;
}

/* turn_of is the place of a flow. TCP of this host has another one after a timeout. */
static __always_inline struct turn *turn_of(struct __sk_buff *skb, __u32 contract, __u32 link)
{
	__u32 place = (bpf_get_hash_recalc(skb) ^ contract * 0x85ebca6b ^ link * 0xc2b2ae35) * 0x9e3779b1 >> 18;

	return bpf_map_lookup_elem(&turns, &place);
}

/* sharers counts a flow, and returns by how many the limit is shared. */
static __always_inline __u64 sharers(struct departure *d, struct turn *t, __u64 now)
{
	__u32 round = now >> ROUND;

	if (d->round != round) {
		d->flows = d->round + 1 == round ? d->seen : 0;
		d->seen = 0;
		d->round = round;
	}
	if (t->round != round) {
		t->round = round;
		d->seen++;
	}
	return most(most(d->flows, d->seen), 1);
}

/*
 * goes_ahead reports whether a packet need not wait behind others, and charges its flow: one
 * that has no packet in the line, has not had more than a frame above its even part, and
 * finds something left of what may go ahead.
 */
static __always_inline bool goes_ahead(struct departure *d, struct turn *t, __u64 now, __u32 wire, __u64 cost)
{
	__u64 n = sharers(d, t, now), frame = FRAME * SECOND / d->rate;
	__u64 taken = most(t->taken, now) + cost * n;
	__u64 ahead = most(d->ahead, now) + cost * PART;
	bool may = t->leaves <= now && wire <= FRAME && taken <= now + frame * n && ahead <= now + most(SLACK, PAIR * frame) * PART;

	/* Who has been greedy for long is forgiven after a second. */
	t->taken = least(taken, now + most(SECOND, frame * n));
	if (may)
		d->ahead = ahead;
	return may;
}

/*
 * take has a packet take its time from one limit, and says how long it waits; bare ones do
 * not. It is global, as those below are: so the kernel proves them once, and not for each
 * limit.
 */
__noinline int take(struct __sk_buff *skb, __u32 contract, __u32 link, __u64 now, bool bare)
{
	struct departure *d = departure_of(contract, link);
	struct turn *t;
	__u64 at, cost, wait = 0;
	__u32 wire, segments;
	bool late;

	if (!skb || !d)
		return NOT_IN;
	t = turn_of(skb, contract, link);
	if (!t)
		return NOT_IN;
	wire = skb->wire_len;
	segments = skb->gso_segs ? skb->gso_segs : 1;
	cost = wire * SECOND / d->rate;
	bpf_spin_lock(&d->lock);
	at = most(d->next, now - SLACK);
	if (!bare && !goes_ahead(d, t, now, wire, cost) && at > now)
		wait = at - now;
	late = wait > bound(cost);
	if (late) {
		d->dropped += segments;
	} else {
		if (wait)
			t->leaves = at;
		d->next = at + cost;
		d->passed += wire;
		tally(d, least(at, now + wait), wire);
	}
	bpf_spin_unlock(&d->lock);
	if (late)
		return TOO_LONG;
	if (wait && skb->tstamp < at)
		skb->tstamp = at;
	return wait > most(PATIENCE, PAIR * cost) ? LONG : SHORT;
}

/* give_back undoes take, of a packet that another limit has refused. */
__noinline int give_back(__u32 contract, __u32 link, __u32 wire)
{
	struct departure *d = departure_of(contract, link);
	__u64 cost;

	if (!d)
		return 0;
	cost = wire * SECOND / d->rate;
	bpf_spin_lock(&d->lock);
	d->next -= cost;
	d->passed -= wire;
	d->in_window -= least(d->in_window, wire);
	bpf_spin_unlock(&d->lock);
	return 0;
}

/* mark counts packets that carry the mark of congestion. */
__noinline int mark(__u32 contract, __u32 link, __u32 segments)
{
	struct departure *d = departure_of(contract, link);

	if (!d)
		return 0;
	bpf_spin_lock(&d->lock);
	d->marked += segments;
	bpf_spin_unlock(&d->lock);
	return 0;
}

/* Whose limits a packet may be below: its contract's and those of three above. */
#define WHOSE 4
/* Each on all links together, and on this one. */
#define LINES (2 * WHOSE)

/* The lines that a packet is in, and how long it waits in each; contract 0: it is in none. */
struct lines {
	__u32 contracts[LINES];
	__u32 links[LINES];
	int waits[LINES];
};

static __always_inline void add_lines(struct __sk_buff *skb, struct lines *l, __u32 i, void *contracts, __u32 id)
{
	struct contract *c = id && contracts ? bpf_map_lookup_elem(contracts, &id) : NULL;
	__u32 limited = c ? c->limited : 0;

	l->contracts[i] = limited & DEPARTS_TOGETHER ? id : 0;
	l->links[i] = 0;
	l->waits[i] = NOT_IN;
	l->contracts[i + 1] = limited & DEPARTS_HERE ? id : 0;
	l->links[i + 1] = skb->ifindex;
	l->waits[i + 1] = NOT_IN;
}

static __always_inline void find_lines(struct __sk_buff *skb, struct lines *l)
{
	__u32 link = skb->cb[0] & NO_LINK;
	void *contracts = bpf_map_lookup_elem(&links, &link);

	add_lines(skb, l, 0, contracts, skb->cb[2]);
	add_lines(skb, l, 2, contracts, skb->cb[3] & 0xffff);
	add_lines(skb, l, 4, contracts, skb->cb[3] >> 16);
	add_lines(skb, l, 6, contracts, skb->cb[4] & 0xffff);
}

/* take_all has a packet take its time from all its lines or from none, and says how long it waits. */
static __always_inline int take_all(struct __sk_buff *skb, struct lines *l, __u64 now, bool bare)
{
	int longest = NOT_IN;
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < LINES; i++) {
		if (!l->contracts[i] || longest == TOO_LONG)
			continue;
		l->waits[i] = take(skb, l->contracts[i], l->links[i], now, bare);
		if (l->waits[i] > longest)
			longest = l->waits[i];
	}
	if (longest != TOO_LONG)
		return longest;
#pragma clang loop unroll(full)
	for (i = 0; i < LINES; i++) {
		if (l->waits[i] == SHORT || l->waits[i] == LONG)
			give_back(l->contracts[i], l->links[i], skb->wire_len);
	}
	return TOO_LONG;
}

/* mark_all marks a packet that waits for long, if its ends know that, and counts it. */
static __always_inline void mark_all(struct __sk_buff *skb, struct lines *l)
{
	__u32 i, segments = skb->gso_segs ? skb->gso_segs : 1;

	if (bpf_skb_ecn_set_ce(skb) != 1)
		return;
#pragma clang loop unroll(full)
	for (i = 0; i < LINES; i++) {
		if (l->waits[i] == LONG)
			mark(l->contracts[i], l->links[i], segments);
	}
}

/* bare tells packets that carry nothing worth holding. */
static __always_inline bool bare(struct __sk_buff *skb)
{
	return skb->wire_len <= BARE && (skb->protocol == bpf_htons(ETH_P_ARP) || acknowledges(skb));
}

SEC("tc")
int depart(struct __sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns();
	struct lines lines;

	find_lines(skb, &lines);
	switch (take_all(skb, &lines, now, bare(skb))) {
	case TOO_LONG:
		return DROP;
	case LONG:
		mark_all(skb, &lines);
	}
	return skb->cb[0] & LINES_UP ? line_up(skb, NEXT) : NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
