// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * limit: holds a packet that leaves a link to the limits that it is below.
 *
 * link_egress goes on here, and hands on in cb what it knows (limiter.h). What may go on gets
 * its time of departure after that, where anything has one.
 */
#include "blocs.h"
#include "hold.h"
#include "limiter.h"
#include "links.h"
#include "prefixes.h"
#include "waiting.h"

/*
 * add_by_id puts the budgets of a contract into a load; of nobody's there are none. It
 * returns in whose bloc the packet is in what binds it from further up: of the outermost
 * contract with a weight.
 */
static __always_inline __u32 add_by_id(struct __sk_buff *skb, struct load *l, __u32 *n, void *contracts, __u32 id, __u32 member)
{
	struct contract *c = id && contracts ? bpf_map_lookup_elem(contracts, &id) : NULL;
	__u32 toward;

	if (!c)
		return member;
	add(l, n, bloc_in(c->together, member));
	add(l, n, bloc_in(c->together_packets, member));
	add(l, n, bloc_in(c->here, member));
	add(l, n, bloc_in(c->here_packets, member));
	if (c->prefixes) {
		toward = budgets_toward(skb, id, skb->cb[4] >> 16);
		add(l, n, bloc_in(toward & 0xffff, member));
		add(l, n, bloc_in(toward >> 16, member));
	}
	return c->limited & HAS_WEIGHT ? id : member;
}

/*
 * find_budgets puts the budgets of a packet into its load. It is global: so the kernel
 * proves what comes after it once, and not for each number of them.
 */
__noinline int find_budgets(struct __sk_buff *skb, struct load *l)
{
	__u32 link, own, above, member, n = 0;
	void *contracts;

	if (!skb || !l)
		return 0;
	link = skb->cb[0] & NO_LINK;
	own = skb->cb[1];
	above = skb->cb[3];
	contracts = bpf_map_lookup_elem(&links, &link);
	add(l, &n, own & 0xffff);
	add(l, &n, own >> 16);
	member = add_by_id(skb, l, &n, contracts, skb->cb[2], 0);
	member = add_by_id(skb, l, &n, contracts, above & 0xffff, member);
	member = add_by_id(skb, l, &n, contracts, above >> 16, member);
	member = add_by_id(skb, l, &n, contracts, skb->cb[4] & 0xffff, member);
	if (!member || !own)
		return 0;
	n = 0; /* the link's own, now that it is known whose packet it is */
	add(l, &n, bloc_in(own & 0xffff, member));
	add(l, &n, bloc_in(own >> 16, member));
	return 0;
}

/* take_budgets puts those into its load that it was told. */
static __always_inline void take_budgets(struct __sk_buff *skb, struct load *l)
{
	__u32 n = 0;

	add(l, &n, skb->cb[1] & 0xffff);
	add(l, &n, skb->cb[1] >> 16);
	add(l, &n, skb->cb[2] & 0xffff);
	add(l, &n, skb->cb[2] >> 16);
}

SEC("tc")
int limit(struct __sk_buff *skb)
{
	struct load load = { .wire = skb->wire_len, .segments = skb->gso_segs ? skb->gso_segs : 1, .hook = skb->ifindex * 2 };
	struct load *l = &load;
	int verdict;
	bool told;

	opaque(l);
	l->datagram = skb->cb[0] & DATAGRAMS;
	told = skb->cb[0] & TOLD;
	l->tab = told ? tab_in(skb->cb[1], skb->cb[2]) : 0;
	if (told)
		take_budgets(skb, l);
	else
		find_budgets(skb, l);
	verdict = l->budgets[0] ? hold(skb, l) : NEXT;
	if (verdict == NEXT && !told)
		bpf_tail_call(skb, &limiter, DEPART);
	if (verdict == NEXT && skb->cb[0] & LINES_UP)
		return line_up(skb, NEXT);
	return verdict;
}

char _license[] SEC("license") = "Dual BSD/GPL";
