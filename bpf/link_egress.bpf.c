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
#include "answers.h"
#include "limiter.h"
#include "plain.h"
#include "resolve.h"
#include "rests.h"
#include "shortcut.h"

/*
 * The classes of our own HTB have this many leaves, less one: link_egress adds
 * the bucket of the flow to the class id. 0: the class is the leaf.
 */
const volatile __u32 bucket_mask;

/* The link has no queue of ours: what keeps its priority is left alone, and not looked up. */
const volatile bool no_queue;

/* The budgets of this link's own limits, the one of packets above the other; 0: none. */
const volatile __u32 own_budgets;

/* Whether answers wait in a queue of ours. Where none does, a packet is not even asked where it comes from. */
enum waits {
	NONE_WAIT,
	OTHERS_WAIT,  /* none by this link now, but there is such a queue, from which some may come back */
	ANSWERS_WAIT, /* those of some contract */
};
const volatile enum waits waits;

/* The device by which that comes back; 0: there is none. */
const volatile __u32 come_back;

/* Go on to the next program: Weir never decides the packet's fate here. */
#define NEXT -1

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");

/* count counts as the qdisc does: super-packets as what they become on the wire, which is longer than they are. */
static __always_inline void count(struct __sk_buff *skb, __u32 id)
{
	struct counter *c = bpf_map_lookup_elem(&counters, &id);
	__u32 wire = skb->wire_len;

	if (!c)
		return;
	c->packets += __builtin_expect(wire > skb->len, false) && skb->gso_segs ? skb->gso_segs : 1;
	c->bytes += wire;
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

/* hand goes on in limit, which has to look for the packet's budgets, or else in depart. */
static __always_inline void hand(struct __sk_buff *skb, struct verdict v, bool own, struct above *above, __u32 lines_up)
{
	skb->cb[0] = this_link | (v.link & DATAGRAMS) | lines_up;
	skb->cb[1] = own_budgets;
	skb->cb[2] = own ? v.contract : CONTRACT_UNCLAIMED;
	skb->cb[3] = above->contracts[0] | (__u32)above->contracts[1] << 16;
	skb->cb[4] = above->contracts[2] | l2_length << 16;
	bpf_tail_call(skb, &limiter, LIMIT);
	bpf_tail_call(skb, &limiter, DEPART);
}

/* tell goes on in limit with the budgets themselves, the first two and the last. */
static __always_inline void tell(struct __sk_buff *skb, struct verdict v, __u32 first, __u32 last, __u32 lines_up)
{
	skb->cb[0] = this_link | (v.link & DATAGRAMS) | TOLD | lines_up;
	skb->cb[1] = first;
	skb->cb[2] = last;
	bpf_tail_call(skb, &limiter, LIMIT);
}

/* owes says whether a packet has to be charged: it is not paid yet, and does not go on its connection's tab. */
static __always_inline bool owes(struct __sk_buff *skb, struct verdict v, struct known *at, struct budgets_of *b)
{
	if (v.link & DATAGRAMS)
		return !all_settled(b, skb->wire_len);
	return !at || !on_tab(&at->tab, all_of(b), sent_at(skb), skb->wire_len, skb->gso_segs);
}

/* short_cut sees to a packet of a socket that keeps a shortcut which holds, and says whether it did. */
static __always_inline bool short_cut(struct __sk_buff *skb, struct known *at, __u32 now)
{
	__u64 shortcut = *(volatile __u64 *)&at->shortcut;
	__u32 priority = priority_in(shortcut, now), budget = budget_in(shortcut);
	struct verdict v = { .contract = contract_in(shortcut), .link = DATAGRAMS };
	struct budgets_of b = { .of[0] = budget };

	if (priority > EDITION_KEEP)
		return false;
	if (priority != EDITION_KEEP)
		skb->priority = priority;
	count(skb, v.contract);
	if (budget && owes(skb, v, at, &b))
		tell(skb, v, budget, 0, 0);
	return true;
}

/* resting_of is what is noted of a packet's connection, if that rests. */
static __always_inline struct resting *resting_of(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	__u32 ports = sk ? ports_of(sk) : 0;
	struct resting *r = sk ? place_of(ports) : NULL;

	return r && rests(r, sk, ports) ? r : NULL;
}

/* leave_resting notes until the next jiffy that a packet's connection rests, where it does and all its packets have that verdict. */
static __always_inline void leave_resting(struct __sk_buff *skb, struct verdict v, __u32 how)
{
	struct bpf_sock *sk = skb->sk;
	struct resting *r;
	__u32 ports;

	if (how != RESTS || !sk || (where(v) != EVERY_LINK && where(v) != this_link))
		return;
	ports = ports_of(sk);
	r = place_of(ports);
	if (r)
		let_rest(r, sk, ports, v.contract);
}

/* answer_with is answer, of what is no datagram. */
static __always_inline __u32 answer_with(struct __sk_buff *skb, struct verdict v, __u32 limited)
{
	return limited & ANSWERS && !(v.link & DATAGRAMS) ? answer(skb) : 0;
}

/* pass_nested is pass for a packet that other limits than its own contract's may hold, or several of that. */
static __always_inline __u32 pass_nested(struct __sk_buff *skb, struct verdict v, struct contract *c, struct known *at)
{
	struct above above = bound_above(skb, at, v);
	struct budgets_of b = {};
	__u32 limited, how;
	bool are_plain = all_plain(c, &above, &b, &limited);

	how = answer_with(skb, v, limited);
	if (own_budgets || !are_plain)
		hand(skb, v, c && c->limited, &above, how & LINES_UP);
	else if (!all_of(&b))
		leave_resting(skb, v, how);
	else if (owes(skb, v, at, &b))
		tell(skb, v, first_of(&b), last_of(&b), how & LINES_UP);
	return how & LINES_UP;
}

/* pass_one is pass for a packet that one budget of its contract may hold, and nothing else. */
static __always_inline __u32 pass_one(struct __sk_buff *skb, struct verdict v, struct contract *c, struct known *at)
{
	__u32 lines_up = answer_with(skb, v, c->limited) & LINES_UP;
	struct budgets_of b = { .of[0] = c->together };

	if (owes(skb, v, at, &b))
		tell(skb, v, c->together, 0, lines_up);
	return lines_up;
}

/*
 * pass hands a packet on where any limit may hold for it. Most are below one, or some of one budget each: then limit
 * is told these, and need not look; and a datagram that is paid already, or what goes on its connection's tab, need
 * not even go there. It returns whether the packet is to wait, LINES_UP or 0.
 */
static __always_inline __u32 pass(struct __sk_buff *skb, struct verdict v, struct contract *c, struct known *at)
{
	if (!(v.link & NESTED) && !own_budgets) {
		if (!c || !c->limited)
			return 0;
		if (c->limited & HAS_ONE)
			return pass_one(skb, v, c, at);
	}
	return pass_nested(skb, v, c, at);
}

/* prioritize writes a packet's priority, as its contract has it. */
static __always_inline void prioritize(struct __sk_buff *skb, struct contract *c)
{
	__u32 priority = c ? c->priority : PRIORITY_KEEP;

	if (priority == PRIORITY_KEEP && !no_queue)
		priority = kept(skb->priority);
	if (priority != PRIORITY_KEEP)
		skb->priority = in_bucket(skb, priority);
}

/* has_waited says whether a packet comes back from a queue of ours, and is counted and charged. */
static __always_inline bool has_waited(struct __sk_buff *skb) { return come_back && skb->ingress_ifindex == come_back; }

/* pass_resting sees to a packet of a connection that rests, while its contract has nothing else for it, and says whether it did. */
static __always_inline bool pass_resting(struct __sk_buff *skb)
{
	struct resting *r = resting_of(skb);
	struct contract *c;
	__u32 id;

	if (!r)
		return false;
	id = r->contract;
	c = bpf_map_lookup_elem(&contracts, &id);
	if (c && c->limited & ~ANSWERS)
		return false;
	prioritize(skb, c);
	count(skb, id);
	return true;
}

SEC("tc")
int link_egress(struct __sk_buff *skb)
{
	struct contract *c;
	struct verdict v;
	struct known *at;
	__u32 id, now = NO_EDITION;
	enum waits may = waits;

	if (may != NONE_WAIT) {
		if (has_waited(skb))
			return NEXT;
		if (may == ANSWERS_WAIT && pass_resting(skb))
			return NEXT;
	}
	at = known_to(skb);
	if (keeps_shortcuts && at) {
		now = edition;
		if (short_cut(skb, at, now))
			return NEXT;
	}
	v = resolve(skb, at);
	id = v.contract;
	c = bpf_map_lookup_elem(&contracts, &id);
	if (now != NO_EDITION)
		leave_shortcut(at, v, c, now);
	prioritize(skb, c);
	count(skb, id);
	if (limits && pass(skb, v, c, at))
		return line_up(skb, NEXT);
	return NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
