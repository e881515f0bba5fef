// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * limit: holds a packet that leaves a link to the limits that it is below.
 *
 * link_egress goes on here, with the numbers of their budgets in cb, two to a word.
 */
#include "hold.h"

SEC("tc")
int limit(struct __sk_buff *skb)
{
	struct load load = { .wire = skb->wire_len, .segments = skb->gso_segs ? skb->gso_segs : 1, .hook = skb->ifindex * 2 };
	struct load *l = &load;
	__u32 pairs[5] = { skb->cb[0], skb->cb[1], skb->cb[2], skb->cb[3], skb->cb[4] }, n = 0, i;

	opaque(l);
#pragma clang loop unroll(full)
	for (i = 0; i < 5; i++) {
		add(l, &n, pairs[i] & 0xffff);
		add(l, &n, pairs[i] >> 16);
	}
	return hold(skb, l);
}

char _license[] SEC("license") = "Dual BSD/GPL";
