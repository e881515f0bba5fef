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

/*
 * The classes of our own HTB have this many leaves, less one: link_egress adds
 * the bucket of the flow to the class id. 0: the class is the leaf.
 */
const volatile __u32 bucket_mask;

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

/* settled says whether a packet is of what a budget has been paid before, and takes it from there. */
static __always_inline bool settled(struct __sk_buff *skb, __u32 budget)
{
	__u64 *credit = credit_of(budget), wire = skb->wire_len;

	if (!prepaid(credit, wire))
		return false;
	*credit -= wire;
	return true;
}

/*
 * pass goes on in limit, or else in depart, where any limit may hold for the packet. Most are
 * below one limit: then limit is told which, and need not look; and a datagram that is paid
 * already need not even go there.
 */
static __always_inline void pass(struct __sk_buff *skb, struct verdict v, struct contract *c, struct above *above)
{
	bool own = c && c->limited, others = above->contracts[0] || own_budgets;
	__u32 only = own && !others && c->limited & HAS_ONE ? c->together : 0;

	if (!own && !others)
		return;
	if (only && v.link & DATAGRAMS && settled(skb, only))
		return;
	skb->cb[0] = this_link | (v.link & DATAGRAMS) | only << 16;
	skb->cb[1] = own_budgets;
	skb->cb[2] = own ? v.contract : CONTRACT_UNCLAIMED;
	skb->cb[3] = above->contracts[0] | (__u32)above->contracts[1] << 16;
	skb->cb[4] = above->contracts[2] | l2_length << 16;
	bpf_tail_call(skb, &limiter, LIMIT);
	bpf_tail_call(skb, &limiter, DEPART);
}

SEC("tc")
int link_egress(struct __sk_buff *skb)
{
	struct above above = {};
	struct verdict v = resolve(skb, &above);
	__u32 id = v.contract, priority;
	struct contract *c = bpf_map_lookup_elem(&contracts, &id);

	priority = c ? c->priority : PRIORITY_KEEP;
	if (priority == PRIORITY_KEEP)
		priority = kept(skb->priority);
	if (priority != PRIORITY_KEEP)
		skb->priority = in_bucket(skb, priority);
	count(skb, id);
	if (limits)
		pass(skb, v, c, &above);
	return NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
