/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection that is held back to its share keeps a tab: what it sends within a moment is
 * charged with its next packet after that. So most packets of those that send little each go no
 * further than link_egress, which finds the tab where it finds whose they are; limit, which charges
 * them, is not even called. What a connection receives goes on another one, until the kernel's next
 * jiffy, while its limits are not reached.
 *
 * A vote measures four times as long as a moment, and stands for twice a jiffy or more, so nobody's share depends on it. All that is
 * on the tabs of a limit is no more than that lets pass in a moment.
 */
#ifndef WEIR_TAB_H
#define WEIR_TAB_H

#include "contract.h"

#include <stdbool.h>

/* Moments in a second, as a shift: 977 us. */
#define MOMENTS 10
#define MOMENT (1000000000 >> MOMENTS)
/* What is received has room on a tab for what its share gives in such a part of a second: 244 us. */
#define RECEIVED_MOMENTS 12
/* Who falls silent for good has been charged for all but such a part of what it sent, as a shift. */
#define UNPAID 4
/* On so many CPUs at once, as a shift, while it has calm. */
#define AT_ONCE 2

/* tab_in is what a tab is of: the numbers of a packet's budgets, the first two and the last. */
static __always_inline __u64 tab_in(__u32 first, __u32 last) { return first | (__u64)last << 32; }

/* open_tab begins one, with room for so many bytes, of a connection that has been charged for so many. */
static __always_inline void open_tab(struct tab *t, __u64 in, __u64 ends, __u64 room, __u64 paid)
{
	t->in = in;
	t->ends = ends;
	t->room = room < paid >> UNPAID ? room : paid >> UNPAID;
	t->bytes = t->segments = t->held = 0;
}

/* sent_at is when TCP sent a packet: it sends one after the other and stamps them with the time. */
static __always_inline __u64 sent_at(struct __sk_buff *skb) { return skb->tstamp ? skb->tstamp : -1; }

/* on_tab says whether a packet of TCP goes on its connection's tab, and puts it there. */
static __always_inline bool on_tab(struct tab *t, __u64 in, __u64 now, __u32 wire, __u32 segments)
{
	if (t->in != in || now >= t->ends || t->bytes + wire > t->room)
		return false;
	t->bytes += wire;
	t->segments += segments ? segments : 1;
	return true;
}

/* lend_tab has what else fits on a tab go on another one, that is empty. */
static __always_inline void lend_tab(struct tab *from, struct tab *to)
{
	to->ends = from->ends;
	to->room = from->room - from->bytes;
}

/* end_tab has nothing more go on a tab, from which all has been taken. */
static __always_inline void end_tab(struct tab *t) { t->bytes = t->segments = t->room = 0; }

#endif
