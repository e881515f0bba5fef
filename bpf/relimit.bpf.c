// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * relimit: changes a limit while packets are charged to it.
 *
 * It is never attached: user space runs it once. Written through the table, a budget
 * would be replaced, and what other CPUs charge meanwhile be lost; here it stays
 * where it is, with all that it knows of its flows.
 *
 * What was sent at the old limit is forgotten: it is neither repaid at the new one
 * nor held against it.
 */
#include "budgets.h"
#include "fair.h"

#include <bpf/bpf_helpers.h>

/* Which limit, and what it is from now on. */
const volatile __u32 number;
const volatile __u64 limit = 1;	      /* bytes a second */
const volatile __u64 tick_length = 1; /* ns */
const volatile __u64 tick_bytes;      /* what the limit lets pass in a tick, times 1024 */
const volatile __u64 burst;	      /* bytes that its buckets collect, if that was told */
const volatile __u64 depth;	      /* for how long the bucket of datagrams collects, ns */
const volatile __u64 stream_depth;    /* and that of TCP that nobody paces */
const volatile __u64 slice_length;    /* the time's worth of its share that a CPU is given at once, ns */
const volatile __u64 sent;	      /* bytes beyond the limit, as a new one begins */

/* Returns whether there is such a limit. */
SEC("tc")
int relimit(struct __sk_buff *skb __attribute__((unused)))
{
	__u64 now = bpf_ktime_get_ns();
	struct budget *b = budget_of(number);

	if (!b)
		return false;
	b->limit = limit;
	b->tick_length = tick_length;
	b->tick_bytes = tick_bytes;
	b->burst = burst;
	b->depth = depth;
	b->stream_depth = stream_depth;
	b->slice = slice_length;
	b->trim = ONE;
	appraise(b);
	b->sent = sent;
	b->excess = 0;
	b->paid = least(b->paid, now * FRACTION);
	b->streams_paid = least(b->streams_paid, now * FRACTION);
	b->window = now;
	b->in_window = b->last = b->busiest = 0;
	return true;
}

char _license[] SEC("license") = "Dual BSD/GPL";
