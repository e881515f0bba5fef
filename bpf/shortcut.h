/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A socket of UDP's keeps a shortcut beside its verdict: whose its packets are, which priority they get, and the one budget
 * that they are charged to. So nothing else is looked up for a packet of it: each line of memory that is asked for
 * takes about as long as ten instructions, and that is most of what a limit costs that is not reached.
 *
 * It holds for one link, and for one edition of what contracts mean there. Who changes a contract takes the link's
 * edition away, makes the change, and gives the link a new one: so no shortcut outlives what it was found by, wherever
 * the change is cut off.
 *
 * What it does not promise: anything on links that have a queue of ours or a limit of their own. There more has to be
 * known of each packet, and they have no editions. And a socket that is silent while contracts are changed 100
 * million times may take its shortcut to hold.
 */
#ifndef WEIR_SHORTCUT_H
#define WEIR_SHORTCUT_H

#include "contract.h"
#include "resolve.h"

#include <bpf/bpf_helpers.h>

/* The link has neither a queue of ours nor a limit of its own: else nothing of all this is left in its program. */
const volatile bool keeps_shortcuts;

/* The link's edition, which user space gives it. */
volatile enum edition edition SEC(".data.edition") = NO_EDITION;

/* priority_in is the priority of a shortcut; more than EDITION_KEEP: it does not hold now. */
static __always_inline __u32 priority_in(__u64 shortcut, __u32 now) { return (shortcut >> 32) - now; }

static __always_inline __u32 budget_in(__u64 shortcut) { return shortcut >> 16 & 0xffff; }

static __always_inline __u32 contract_in(__u64 shortcut) { return shortcut & 0xffff; }

/*
 * leave_shortcut leaves one in a socket, where its contract is all that binds it and has one budget at most. That answers wait
 * is nothing to datagrams. The edition was read before the contract; there is one.
 */
static __always_inline void leave_shortcut(struct known *at, struct verdict v, struct contract *c, __u32 now)
{
	__u32 priority, budget;
	bool keeps;

	if (!at || !c || v.link != (EVERY_LINK | DATAGRAMS) || c->limited & ~(HAS_ONE | ANSWERS))
		return;
	keeps = c->priority == PRIORITY_KEEP;
	priority = keeps ? EDITION_KEEP : c->priority;
	budget = c->limited & HAS_ONE ? c->together : 0;
	if (!keeps && priority >= EDITION_KEEP)
		return;
	*(volatile __u64 *)&at->shortcut = (__u64)(now + priority) << 32 | budget << 16 | v.contract;
}

#endif
