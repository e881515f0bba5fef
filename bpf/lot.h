/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which of many is timed: one in some, by lot, that stands for all of them.
 */
#ifndef WEIR_LOT_H
#define WEIR_LOT_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

/* What is timed is this far apart, ns, where there is more of it: 5,000 a second. */
#define APART 200000
/* At least one in 1 << MOST_SHIFT is timed. */
#define MOST_SHIFT 10
/* Who draws lots, of what kind, on a CPU. */
struct lot {
	__u64 random;
	__u64 last;  /* when the last one that was timed ended; 0: there was none in this part of the time */
	__u64 apart; /* how far apart those that are timed are, smoothed */
	__u32 shift; /* one in 1 << shift is timed */
	__u32 zero;
};

/* draw is whether the next one is timed. */
static __always_inline bool draw(struct lot *l)
{
	l->random = l->random * 6364136223846793005ull + 1442695040888963407ull;
	return !(l->random >> 32 & ((1u << (l->shift & 31)) - 1));
}

/*
 * redraw sets how many are timed from now on, by how far apart the last ones were. Each counts
 * for those among which it was drawn, so the sums are right on the average whatever this does.
 */
static __always_inline void redraw(struct lot *l, __u64 now)
{
	__u64 apart = now - l->last;
	bool first = !l->last;

	l->last = now;
	if (first)
		return;
	if (apart > 16 * APART)
		apart = 16 * APART;
	l->apart += apart / 8 - l->apart / 8;
	if (l->apart < APART / 2 && l->shift < MOST_SHIFT) {
		l->shift++;
		l->apart = APART;
	} else if (l->apart > 2 * APART && l->shift) {
		l->shift--;
		l->apart = APART;
	}
}

#endif
