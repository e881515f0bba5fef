// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * link_egress: the last word on a packet before its link picks a queue for it.
 *
 * It runs at the egress of every declared link (tcx, or clsact with cls_bpf),
 * finds the packet's contract, writes skb->priority and counts. accept(),
 * IP_TOS, veth and forwarding have all had their turn by then, so none of them
 * can take the priority away again.
 *
 * What it does not promise: packets of a socket that is gone or not there yet
 * (TIME_WAIT, RST, SYN cookies) go by their headers alone; where a network
 * namespace belongs to another user namespace, the kernel gives its sockets' users
 * by their numbers there.
 */
#include "credit.h"
#include "limiter.h"
#include "resolve.h"
#include "tab.h"

/*
 * The classes of our own HTB have this many leaves, less one: link_egress adds
 * the bucket of the flow to the class id. 0: the class is the leaf.
 */
const volatile __u32 bucket_mask;

/* The link has no queue of ours: what keeps its priority is left alone, and not looked up. */
const volatile bool no_queue;

/* The budgets of this link's own limits, the one of packets above the other; 0: none. */
const volatile __u32 own_budgets;

/* Go on to the next program: Weir never decides the packet's fate here. */
#define NEXT -1

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");

static __always_inline void count(struct __sk_buff *skb, __u32 id)
{
	struct counter *c = bpf_map_lookup_elem(&counters, &id);

	if (!c)
		return;
	/* As the qdisc counts: super-packets as what they become on the wire. */
	c->packets += skb->gso_segs ? skb->gso_segs : 1;
	c->bytes += skb->wire_len;
}

static __always_inline __u32 kept(__u32 priority)
{
	__u32 id = CONTRACT_LADDER + priority;
	struct contract *c = priority < LEVELS ? bpf_map_lookup_elem(&contracts, &id) : NULL;

	return c ? c->priority : PRIORITY_KEEP;
}

/*
 * in_bucket is the leaf of a flow. A local TCP connection has a hash of its own
 * that stays (sk_txhash, drawn anew after a timeout); all others have that of
 * their addresses and ports. Network cards and other hosts' balancers pick by
 * bits of the same hash, so the bucket is taken from a mix of all of them.
 */
static __always_inline __u32 in_bucket(struct __sk_buff *skb, __u32 class)
{
	if (!bucket_mask)
		return class;
	return class + ((bpf_get_hash_recalc(skb) * 0x9e3779b1 >> 16) & bucket_mask);
}

/* The budgets of a packet whose contracts have no more than one each. */
struct budgets_of {
	__u16 of[1 + ABOVE]; /* its own contract's first; 0: it has none */
};

static __always_inline __u32 first_of(struct budgets_of *b) { return b->of[0] | (__u32)b->of[1] << 16; }
static __always_inline __u32 last_of(struct budgets_of *b) { return b->of[2] | (__u32)b->of[3] << 16; }
static __always_inline bool any(struct budgets_of *b) { return b->of[0] | b->of[1] | b->of[2] | b->of[3]; }

/*
 * plain says whether its one budget, if any, is all that has to be known of a contract: not where it has several, or
 * departures, or counts in the limits of others by its weight.
 */
static __always_inline bool plain(struct contract *c, __u16 *budget)
{
	*budget = 0;
	if (!c || !c->limited)
		return true;
	*budget = c->together;
	return (c->limited & (HAS_ONE | HAS_WEIGHT)) == HAS_ONE;
}

/* all_plain is the same of all contracts that bind a packet. */
static __always_inline bool all_plain(struct contract *own, struct above *above, struct budgets_of *b)
{
	__u32 i, id;

	if (own_budgets || !plain(own, &b->of[0]))
		return false;
#pragma clang loop unroll(full)
	for (i = 0; i < ABOVE; i++) {
		id = above->contracts[i];
		if (!id)
			break;
		if (!plain(bpf_map_lookup_elem(&contracts, &id), &b->of[1 + i]))
			return false;
	}
	return true;
}

/* settled says whether a packet is of what a budget has been paid before, and takes it from there. */
static __always_inline bool settled(struct __sk_buff *skb, __u32 budget)
{
	__u64 *credit = credit_of(budget), wire = skb->wire_len;

	if (!prepaid(credit, wire))
		return false;
	*credit -= wire;
	return true;
}

/* all_settled is the same of all budgets of a packet: it is of each of them, or of none. */
static __always_inline bool all_settled(struct __sk_buff *skb, struct budgets_of *b)
{
	__u64 *credits[1 + ABOVE] = {}, wire = skb->wire_len;
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		if (!b->of[i])
			continue;
		credits[i] = credit_of(b->of[i]);
		if (!prepaid(credits[i], wire))
			return false;
	}
#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		if (credits[i])
			*credits[i] -= wire;
	}
	return true;
}

/* hand goes on in limit, which has to look for the packet's budgets, or else in depart. */
static __always_inline void hand(struct __sk_buff *skb, struct verdict v, bool own, struct above *above)
{
	skb->cb[0] = this_link | (v.link & DATAGRAMS);
	skb->cb[1] = own_budgets;
	skb->cb[2] = own ? v.contract : CONTRACT_UNCLAIMED;
	skb->cb[3] = above->contracts[0] | (__u32)above->contracts[1] << 16;
	skb->cb[4] = above->contracts[2] | l2_length << 16;
	bpf_tail_call(skb, &limiter, LIMIT);
	bpf_tail_call(skb, &limiter, DEPART);
}

/* tell goes on in limit with the budgets themselves, the first two and the last. */
static __always_inline void tell(struct __sk_buff *skb, struct verdict v, __u32 first, __u32 last)
{
	skb->cb[0] = this_link | (v.link & DATAGRAMS) | TOLD;
	skb->cb[1] = first;
	skb->cb[2] = last;
	bpf_tail_call(skb, &limiter, LIMIT);
}

/* pass_nested is pass for a packet that other limits than its own contract's may hold, or several of that. */
static __always_inline void pass_nested(struct __sk_buff *skb, struct verdict v, struct contract *c, struct tab *t)
{
	struct above above = bound_above(skb, v);
	struct budgets_of b = {};
	__u32 first, last;

	if (!all_plain(c, &above, &b)) {
		hand(skb, v, c && c->limited, &above);
		return;
	}
	first = first_of(&b);
	last = last_of(&b);
	if (any(&b) && !(v.link & DATAGRAMS ? all_settled(skb, &b) : on_tab(skb, t, tab_in(first, last))))
		tell(skb, v, first, last);
}

/*
 * pass hands a packet on where any limit may hold for it. Most are below one, or some of one budget each: then limit
 * is told these, and need not look; and a datagram that is paid already, or what goes on its connection's tab, need
 * not even go there.
 */
static __always_inline void pass(struct __sk_buff *skb, struct verdict v, struct contract *c, struct tab *t)
{
	bool own = c && c->limited, others = v.link & NESTED || own_budgets;

	if (!own && !others)
		return;
	if (others || !(c->limited & HAS_ONE))
		pass_nested(skb, v, c, t);
	else if (!(v.link & DATAGRAMS ? settled(skb, c->together) : on_tab(skb, t, tab_in(c->together, 0))))
		tell(skb, v, c->together, 0);
}

SEC("tc")
int link_egress(struct __sk_buff *skb)
{
	struct known *at = known_to(skb);
	struct verdict v = resolve(skb, at);
	__u32 id = v.contract, priority;
	struct contract *c = bpf_map_lookup_elem(&contracts, &id);

	priority = c ? c->priority : PRIORITY_KEEP;
	if (priority == PRIORITY_KEEP && !no_queue)
		priority = kept(skb->priority);
	if (priority != PRIORITY_KEEP)
		skb->priority = in_bucket(skb, priority);
	count(skb, id);
	if (limits)
		pass(skb, v, c, at ? &at->tab : NULL);
	return NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
