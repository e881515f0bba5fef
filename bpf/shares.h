/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the limits of a connection leave it: the least of its shares, in all the
 * budgets that it has been charged to lately.
 */
#ifndef WEIR_SHARES_H
#define WEIR_SHARES_H

#include "budgets.h"
#include "fair.h"
#include "stakes.h"

/* Payload of a full segment of MTU 1500 with timestamps. */
#define FULL_SEGMENT 1448

/* budget_in is the budget that a stake is in, while that is the same limit. */
static __always_inline struct budget *budget_in(struct stake *s)
{
	struct budget *b = budget_of(s->budget);

	return b && b->serial == s->serial ? b : NULL;
}

/* stale says that a connection has not been charged to a budget for a while. */
static __always_inline bool stale(struct paced *p, struct stake *s)
{
	return p->heard > s->charged + SECOND + 8 * p->window;
}

/* lapsed says that a connection has not been charged to any budget for a while. */
static __always_inline bool lapsed(struct paced *p)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < STAKES; i++) {
		if (!stale(p, &p->stakes[i]))
			return false;
	}
	return true;
}

/*
 * tells says that the latest segments of a connection tell of those to come: they were a quarter of a second of its share,
 * on the wire. Who says a word now and then has not been held back, and once there is more its segments are full: paced
 * by that word, the first of them would wait for as long as a hundred take.
 */
static __always_inline bool tells(struct paced *p, __u64 share) { return p->wire >= least(share, RECENT) / 4; }

/* full is the payload of a full segment. */
static __always_inline __u64 full(struct paced *p) { return p->full ? p->full : FULL_SEGMENT; }

/* payload is what of a rate on the wire is payload of the connection, which has such a share. */
static __always_inline __u64 payload(struct paced *p, __u64 share, __u64 rate)
{
	if (p->payload && tells(p, share))
		return rate * p->payload / p->wire;
	return rate * full(p) / (full(p) + p->head);
}

/*
 * share_in is the connection's share of a budget in bytes on the wire. Of packets that
 * is what as many of its latest ones weighed.
 */
static __always_inline __u64 share_in(struct paced *p, struct budget *b)
{
	__u64 rate = share(b), each = (full(p) + p->head) << 10;

	if (!b->packets)
		return most(rate, 1);
	if (p->mean && tells(p, rate * p->mean / ((__u64)SEGMENT << 10)))
		each = p->mean;
	return most(rate * each / ((__u64)SEGMENT << 10), 1);
}

/* What the limits of a connection leave it. */
struct leave {
	__u64 share;  /* the least of its shares, on the wire; 0: it is below no limit */
	__u64 limits; /* their sum */
	bool binds;   /* one of them has to be kept by a pace now */
	__u32 keeps;  /* whose share is the least, if a pace that stays tells its load as it was: not where it is all of the limit */
	__u32 place;  /* and where among the connection's stakes it is */
};

/*
 * look_at sees what one stake leaves. It is global, as cut_stake is: so the kernel proves
 * them once, and not for each stake.
 */
__noinline int look_at(struct paced *p, __u32 place, struct leave *l)
{
	struct budget *b, *up;
	struct stake *s;
	__u64 rate;

	if (!p || !l || place >= STAKES)
		return 0;
	s = &p->stakes[place];
	b = budget_in(s);
	if (!b || stale(p, s))
		return 0;
	up = limit_of(b);
	inherit(b, up);
	l->binds |= binds(up ? up : b, p->heard);
	s->flow.window = p->window;
	l->limits += b->limit;
	rate = share_in(p, b);
	if (l->share && l->share <= rate)
		return 0;
	l->share = rate;
	l->keeps = share(b) < b->limit && still(s->flow.load, cut(b)) ? s->budget : 0;
	l->place = place;
	return 0;
}

/* cut_stake tells a budget that a connection's pace is cut for its load of now. */
__noinline int cut_stake(struct paced *p, __u32 place)
{
	struct budget *b;
	struct stake *s;

	if (!p || place >= STAKES)
		return 0;
	s = &p->stakes[place];
	b = budget_in(s);
	if (b && !stale(p, s))
		cut_pace(b, &s->flow);
	return 0;
}

static __always_inline void find_leave(struct paced *p, struct leave *l)
{
	__u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < STAKES && taken(&p->stakes[i]); i++)
		look_at(p, i, l);
}

/*
 * cut_paces tells the budgets of a connection that its pace is cut for their loads
 * of now: all of them but one whose share it keeps. So it votes by the share that it
 * leaves wherever another limit, or the application, lets it have less.
 */
static __always_inline void cut_paces(struct paced *p, __u32 keeps)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < STAKES && taken(&p->stakes[i]); i++) {
		if (p->stakes[i].budget != keeps)
			cut_stake(p, i);
	}
}

#endif
