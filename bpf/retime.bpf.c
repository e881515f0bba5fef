// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * retime: changes a limit that is held by departure times while packets take theirs.
 *
 * It is never attached: user space runs it once. Written through the table, a departure
 * would be replaced, and what other CPUs charge meanwhile be lost.
 *
 * What waits keeps its time, and what comes after it leaves after it, but for what waits
 * longer than the new rate lets a segment wait: after a low rate that would be seconds.
 */
#include "departures.h"

#define SEGMENT 1514 /* bytes on the wire */

/* Which limit, and what it is from now on. */
const volatile __u32 contract;
const volatile __u32 link;
const volatile __u64 rate = 1; /* bytes a second */

/* Returns whether there is such a limit. */
SEC("tc")
int retime(struct __sk_buff *skb __attribute__((unused)))
{
	struct departure *d = departure_of(contract, link);
	__u64 farthest = bpf_ktime_get_ns() + bound(SEGMENT * SECOND / rate);

	if (!d)
		return false;
	bpf_spin_lock(&d->lock);
	d->rate = rate;
	d->next = least(d->next, farthest);
	d->ahead = least(d->ahead, farthest);
	d->window = d->in_window = d->last = d->busiest = 0;
	bpf_spin_unlock(&d->lock);
	return true;
}

char _license[] SEC("license") = "Dual BSD/GPL";
