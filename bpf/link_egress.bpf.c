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

/*
 * The classes of our own HTB have this many leaves, less one: link_egress adds
 * the bucket of the flow to the class id. 0: the class is the leaf.
 */
const volatile __u32 bucket_mask;

/* The link has no queue of ours: what keeps its priority is left alone, and not looked up. */
const volatile bool no_queue;

/* The budgets of this link's own limits, the one of packets above the other; 0: none. */
const volatile __u32 own_budgets;

/* The device by which comes back what has waited in a queue of ours; 0: there is none. */
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

/* What is known of a packet. */
struct seen {
	struct verdict v;
	struct contract *c;
	struct known *at;
	struct resting *place; /* where it stands that its socket rests, or may; NULL: nowhere */
	__u32 key;	       /* by which that was found */
};

/* key_of is the hash that its socket has given a packet: those that are connected have one, drawn at random. */
static __always_inline __u32 key_of(struct __sk_buff *skb, struct bpf_sock *sk) { return skb->hash ? skb->hash : ports_of(sk); }

/*
 * leave_resting notes until the next jiffy that a packet's socket rests, where all its packets have that verdict. What it sends goes on
 * its tab there, if it has one.
 */
static __always_inline void leave_resting(struct __sk_buff *skb, struct seen *s, struct tab *on)
{
	struct resting *r = s->place;
	struct bpf_sock *sk = skb->sk;

	if (!r || !sk || !s->c || is_taken(r) || (where(s->v) != EVERY_LINK && where(s->v) != this_link))
		return;
	let_rest(r, sk, s->key);
	r->contract = s->v.contract;
	r->together = s->c->together;
	r->limited = s->c->limited & ~ANSWERS;
	r->datagrams = !!(s->v.link & DATAGRAMS);
	r->tab = *on;
}

/*
 * answer_with is answer, of what is no datagram. Where nothing may wait a socket rests that keeps its verdict itself, since
 * then that is for all its packets.
 */
static __always_inline __u32 answer_with(struct __sk_buff *skb, struct verdict v, __u32 limited)
{
	if (limited & ANSWERS && !(v.link & DATAGRAMS))
		return answer(skb);
	return v.generation == generation ? RESTS : 0;
}

/* charge_plain has a packet charged below some limits of one budget each, or none, and notes whether its socket rests. */
static __always_inline void charge_plain(struct __sk_buff *skb, struct seen *s, struct budgets_of *b, __u32 how)
{
	struct tab on = { .in = all_of(b) };

	if (on.in && owes(skb, s->v, s->at, b)) {
		tell(skb, s->v, first_of(b), last_of(b), how & LINES_UP);
		return;
	}
	if (how != RESTS || !s->place)
		return;
	if (on.in && !(s->v.link & DATAGRAMS)) {
		if (!s->at || !s->at->calm)
			return;
		lend_tab(&s->at->tab, &on);
	}
	leave_resting(skb, s, &on);
}

/* pass_nested is pass for a packet that other limits than its own contract's may hold, or several of that. */
static __always_inline __u32 pass_nested(struct __sk_buff *skb, struct seen *s)
{
	struct above above = bound_above(skb, s->at, s->v);
	struct budgets_of b = {};
	__u32 limited, how;
	bool are_plain = all_plain(s->c, &above, &b, &limited);

	how = answer_with(skb, s->v, limited);
	if (own_budgets || !are_plain)
		hand(skb, s->v, s->c && s->c->limited, &above, how & LINES_UP);
	else
		charge_plain(skb, s, &b, how);
	return how & LINES_UP;
}

/* pass_one is pass for a packet that one budget of its contract may hold, if it has one, and nothing else. */
static __always_inline __u32 pass_one(struct __sk_buff *skb, struct seen *s)
{
	__u32 limited = s->c->limited, how = answer_with(skb, s->v, limited);
	struct budgets_of b = { .of[0] = limited & HAS_ONE ? s->c->together : 0 };

	charge_plain(skb, s, &b, how);
	return how & LINES_UP;
}

/* rest_unlimited notes that the socket of a packet rests that is below no limit. */
static __always_inline void rest_unlimited(struct __sk_buff *skb, struct seen *s)
{
	struct tab none = {};

	if (s->place && s->v.generation == generation)
		leave_resting(skb, s, &none);
}

/*
 * pass hands a packet on where any limit may hold for it. Most are below one, or some of one budget each: then limit
 * is told these, and need not look; and a datagram that is paid already, or what goes on its connection's tab, need
 * not even go there. It returns whether the packet is to wait, LINES_UP or 0.
 */
static __always_inline __u32 pass(struct __sk_buff *skb, struct seen *s)
{
	if (!limits || (!(s->v.link & NESTED) && !own_budgets)) {
		if (!limits || !s->c || !s->c->limited) {
			rest_unlimited(skb, s);
			return 0;
		}
		if (s->c->limited & HAS_ONE || s->c->limited == ANSWERS)
			return pass_one(skb, s);
	}
	return pass_nested(skb, s);
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

/* settles says whether a packet of a socket that rests below limits is paid already, or goes on the tab, and sees to that. */
static __always_inline bool settles(struct __sk_buff *skb, struct resting *r)
{
	struct budgets_of b;

	if (!r->datagrams)
		return on_tab(&r->tab, r->tab.in, sent_at(skb), skb->wire_len, skb->gso_segs);
	if (r->tab.in < 1 << 16)
		return settled(r->tab.in, skb);
	b = budgets_in(r->tab.in);
	return all_settled(&b, skb->wire_len);
}

/*
 * pass_resting sees to a packet of a socket that rests, while its contract is what it was and the packet is paid, or there is room on
 * the tab, and says whether it did.
 */
static __always_inline bool pass_resting(struct __sk_buff *skb, struct resting *r)
{
	__u32 id = r->contract;
	struct contract *c = bpf_map_lookup_elem(&contracts, &id);

	if (!c || (c->limited & ~ANSWERS) != r->limited || c->together != r->together)
		return false;
	if (r->tab.in && !settles(skb, r))
		return false;
	prioritize(skb, c);
	count(skb, id);
	return true;
}

/* collect adds what lies on the tab of a connection that rested to that of its socket. */
static __always_inline void collect(struct __sk_buff *skb, struct seen *s)
{
	struct resting *r = s->place;
	struct bpf_sock *sk = skb->sk;

	if (!r->tab.bytes || !sk || !is_of(r, sk, s->key))
		return;
	s->at->tab.bytes += r->tab.bytes;
	s->at->tab.segments += r->tab.segments;
	end_tab(&r->tab);
}

SEC("tc")
int link_egress(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct seen s = {};
	__u32 id, key;

	if (has_waited(skb))
		return NEXT;
	if (sk) {
		key = key_of(skb, sk);
		s.place = place_of(key);
		if (s.place && rests(s.place, sk, key) && pass_resting(skb, s.place))
			return NEXT;
		s.key = key_of(skb, sk); /* as nothing has changed it yet; it need not be kept until here */
	}
	s.at = known_to(skb);
	if (s.place && s.at)
		collect(skb, &s);
	s.v = resolve(skb, s.at);
	id = s.v.contract;
	s.c = bpf_map_lookup_elem(&contracts, &id);
	prioritize(skb, s.c);
	count(skb, id);
	if (pass(skb, &s))
		return line_up(skb, NEXT);
	return NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
