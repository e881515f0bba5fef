/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Most packets are below no limit, or below limits of one budget each. Of these the budgets are known
 * without a search, and where they have been paid before nothing is charged.
 */
#ifndef WEIR_PLAIN_H
#define WEIR_PLAIN_H

#include "credit.h"
#include "identity.h"
#include "tab.h"

/* The budgets of a packet whose contracts have no more than one each. */
struct budgets_of {
	__u16 of[1 + ABOVE]; /* its own contract's first; 0: it has none */
};

static __always_inline __u32 first_of(struct budgets_of *b) { return b->of[0] | (__u32)b->of[1] << 16; }
static __always_inline __u32 last_of(struct budgets_of *b) { return b->of[2] | (__u32)b->of[3] << 16; }
static __always_inline __u64 all_of(struct budgets_of *b) { return tab_in(first_of(b), last_of(b)); }

/* budgets_in is what a tab is in. */
static __always_inline struct budgets_of budgets_in(__u64 in) { return (struct budgets_of){ .of = { in, in >> 16, in >> 32, in >> 48 } }; }

/* limited_in is what of a contract counts for limits, and the budget of its bytes, if it has one. */
static __always_inline __u32 limited_in(struct contract *c, __u16 *budget)
{
	if (!c)
		return 0;
	*budget = c->together;
	return c->limited;
}

/*
 * all_plain says whether one budget, if any, is all that has to be known of each contract that binds a packet, and finds what
 * they have: their budgets, and what else counts of any of them. It is not where one has several, or departures, or counts in the
 * limits of others by its weight.
 */
static __always_inline bool all_plain(struct contract *own, struct above *above, struct budgets_of *b, __u32 *limited)
{
	__u32 i, id, all = limited_in(own, &b->of[0]);

#pragma clang loop unroll(full)
	for (i = 0; i < ABOVE; i++) {
		id = above->contracts[i];
		if (!id)
			break;
		all |= limited_in(bpf_map_lookup_elem(&contracts, &id), &b->of[1 + i]);
	}
	*limited = all;
	return !(all & (HAS_MORE | HAS_WEIGHT | DEPARTS));
}

/* settled is all_settled of one budget. */
static __always_inline bool settled(__u32 budget, struct __sk_buff *skb)
{
	__u64 *credit = credit_of(budget), wire = skb->wire_len;

	if (!prepaid(credit, wire))
		return false;
	*credit -= wire;
	return true;
}

/*
 * all_settled says whether a packet is of what all its budgets have been paid before, and takes it from there: from each of
 * them, or from none.
 */
static __always_inline bool all_settled(struct budgets_of *b, __u64 wire)
{
	__u64 *credits[1 + ABOVE] = {};
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		if (!b->of[i])
			continue;
		credits[i] = credit_of(b->of[i]);
		if (!prepaid(credits[i], wire))
			return false;
	}
#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		if (credits[i])
			*credits[i] -= wire;
	}
	return true;
}

#endif
