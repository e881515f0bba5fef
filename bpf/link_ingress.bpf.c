// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * link_ingress: holds what enters a link to the link's own limit.
 *
 * What a container of this host sends enters by the host's end of its veth, and its
 * packets still know their sockets there: so its TCP is paced at its source. All
 * else has to go through the bucket.
 *
 * What it does not promise: that the sender of what comes from another host waits;
 * it learns of the limit by marks and losses.
 */
#include "hold.h"
#include "segments.h"

/* Bytes before the network header, as packets of this link have them. */
const volatile __u32 l2_length = ETH_HLEN;
/* The budgets of this link's ingress, the one of packets above the other; 0: none. */
const volatile __u32 own_budgets = 1;

SEC("tc")
int link_ingress(struct __sk_buff *skb)
{
	struct load load = { .hook = skb->ifindex * 2 + 1 }, *l = &load;
	__u32 n = 0;

	opaque(l);
	add(l, &n, own_budgets & 0xffff);
	add(l, &n, own_budgets >> 16);
	weigh(skb, l, 0, l2_length);
	return hold(skb, l);
}

char _license[] SEC("license") = "Dual BSD/GPL";
