/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The limits that a connection is below, as it knows them. There is room for many and most
 * are below one, so nobody looks at places that were never taken.
 */
#ifndef WEIR_STAKES_H
#define WEIR_STAKES_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

/*
 * stake_in returns a connection's stake in a budget. A new one takes the place of
 * the one that was charged least lately, which is none at first.
 */
static __always_inline struct stake *stake_in(struct paced *p, __u32 budget, __u32 serial)
{
	struct stake *s, *oldest = &p->stakes[0];
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < STAKES; i++) {
		s = &p->stakes[i];
		if (s->budget == budget && s->serial == serial)
			return s;
		if (s->charged < oldest->charged)
			oldest = s;
	}
	__builtin_memset(oldest, 0, sizeof(*oldest));
	oldest->flow.window = p->window;
	oldest->budget = budget;
	oldest->serial = serial;
	p->limits = 0; /* cut its pace anew */
	return oldest;
}

/* taken tells the places that had a stake once: those after the first that had none had none either. */
static __always_inline bool taken(struct stake *s) { return s->charged; }

/*
 * leave drops the stakes in limits that the connection was below at this hook and is
 * not any more: it was given another contract.
 */
static __always_inline void leave(struct paced *p, __u32 hook, __u64 now)
{
	struct stake *s;
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < STAKES; i++) {
		s = &p->stakes[i];
		if (!taken(s))
			break;
		if (s->budget && s->hook == hook && s->charged != now)
			s->budget = 0;
	}
}

#endif
