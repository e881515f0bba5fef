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
#include "blocs.h"
#include "hold.h"
#include "resolve.h"
#include "segments.h"

/* The budgets of this link's ingress, the one of packets above the other; 0: none. */
const volatile __u32 own_budgets = 1;
/* Whether the packets of any contract are a bloc in them. */
const volatile bool weights;

/* outer is the contract itself, if it has a weight, or else who was found before. */
static __always_inline __u32 outer(__u32 id, __u32 member)
{
	struct contract *c = id ? bpf_map_lookup_elem(&contracts, &id) : NULL;

	return c && c->limited & HAS_WEIGHT ? id : member;
}

/* member_of is in whose bloc a packet is: who claims its socket is asked as at egress. */
static __noinline __u32 member_of(struct __sk_buff *skb)
{
	struct known *at = known_to(skb);
	struct verdict v = resolve(skb, at);
	struct above above = bound_above(skb, at, v);
	__u32 member = outer(v.contract, CONTRACT_UNCLAIMED), i;

	if (!above.contracts[0])
		return member;
#pragma clang loop unroll(full)
	for (i = 0; i < ABOVE; i++)
		member = outer(above.contracts[i], member);
	return member;
}

SEC("tc")
int link_ingress(struct __sk_buff *skb)
{
	struct load load = { .hook = skb->ifindex * 2 + 1 }, *l = &load;
	__u32 n = 0, member = weights ? member_of(skb) : CONTRACT_UNCLAIMED;

	opaque(l);
	add(l, &n, bloc_in(own_budgets & 0xffff, member));
	add(l, &n, bloc_in(own_budgets >> 16, member));
	weigh(skb, l, 0, l2_length);
	return hold(skb, l);
}

char _license[] SEC("license") = "Dual BSD/GPL";
