// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * socket_ingress: holds what reaches a workload's sockets to what they may receive.
 *
 * It runs where a packet is handed to its socket, in whatever network namespace that
 * is, by any device but loopback. Where TCP's window holds back who sends (window), all
 * passes. Nobody can pace the others: what is too early is marked, and dropped where
 * it is far too early.
 *
 * What it does not promise: that what was dropped did not use the line. It did.
 */
#define NEEDS_ATOMICS

#include "answers.h"
#include "handshakes.h"
#include "hold.h"
#include "plain.h"
#include "resolve.h"
#include "segments.h"
#include "shares.h"

/*
 * Where two segments of a connection take longer, ns, those of all are a good part of what a bucket holds: so that
 * it is not full means nothing.
 */
#define COARSE 55000000ULL

/* More of a connection is not waited for, bytes: its peer has sent it in vain. */
#define UNANSWERED (1 << 28)

/* lo has this number in every network namespace. */
#define LOOPBACK 1

/* Verdicts of cgroup_skb. */
#define PASS 1
#define REFUSE 0

/* add_received puts the budgets of what the sockets of a contract may receive into a load. */
static __always_inline void add_received(struct load *l, __u32 *n, __u32 id)
{
	struct contract *c = bpf_map_lookup_elem(&contracts, &id);

	if (!c)
		return;
	add(l, n, c->together);
	add(l, n, c->together_packets);
}

static __always_inline void find_budgets(struct load *l, __u32 id, struct above *above)
{
	__u32 n = 0, i;

	add_received(l, &n, id);
	if (!above->contracts[0])
		return;
#pragma clang loop unroll(full)
	for (i = 0; i < ABOVE; i++)
		add_received(l, &n, above->contracts[i]);
}

/* window_of is what is known of a connection, NULL where a socket is none. */
static __always_inline struct paced *window_of(struct bpf_sock *sk)
{
	return sk && connected(sk) ? connection(&windows, sk) : NULL;
}

/* may_be_held is what of a packet may be held: a bare one never is. */
static __always_inline __u32 may_be_held(__u32 wire) { return wire > BARE ? wire : 0; }

/*
 * await looks at a connection before its packet is charged: whether what it answers waits, and has held it to its share.
 * It is global, as expect is.
 */
__noinline int await(struct paced *p, __u64 now, __u32 limited)
{
	if (!p)
		return 0;
	if (!p->answered && limited & ANSWERS) /* until it is known by which links it answers */
		p->answered = now;
	if (!p->share) /* its line begins */
		p->due = p->leaves = 0;
	p->waits = answers_wait(p, now);
	p->held = p->waits && (p->device ? p->fills : holds(p->due, now, p->share));
	p->app_limited = p->waits && !p->held; /* it was asked for more */
	return 0;
}

/* find_share finds the share of a connection that window has not looked at yet. */
static __always_inline void find_share(struct paced *p)
{
	struct leave leave = {};

	find_leave(p, &leave);
	p->share = leave.share;
	p->place = leave.place;
}

/*
 * answer_apart says when a connection answers what it got: at once where it is not ahead of its share, and else after
 * others of that limit. TCP answers every other segment, so there is a turn for two.
 */
static __always_inline void answer_apart(struct paced *p, __u64 now, __u64 wire)
{
	__u32 place = p->place;
	__u64 at = p->due;
	struct budget *b;

	p->owed += wire;
	if (at <= now)
		p->owed = p->waited = 0;
	if (p->owed > SEGMENT && place < STAKES) {
		b = budget_in(&p->stakes[place]);
		if (b)
			at = space_out(b, at, p->owed * SECOND / p->share, cut(b), lag(p->share), p->waited);
		p->owed = 0;
		p->waited = at - p->due;
	}
	p->leaves = most(p->leaves, at);
}

/*
 * go_round counts what came in a round trip. Who waits in one line with others has no line of its own to be ahead of: it is
 * held back where as much comes as it asks for, and it would ask for more by itself.
 */
static __always_inline void go_round(struct paced *p, __u64 now, __u32 wire)
{
	p->in_round += wire;
	if (now < p->round + p->window)
		return;
	p->fills = p->in_round >= p->pace / 2 && p->pace < p->own;
	p->in_round = 0;
	p->round = now;
}

/*
 * find_line finds where what a connection acknowledges waits: in the class of the outermost of the limits that it was just
 * charged to. What is in that of one further in would not be held to the sum.
 */
static __always_inline void find_line(struct paced *p, __u64 now)
{
	struct budget *b;
	struct stake *s;
	__u32 i;

	p->device = 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < STAKES && taken(&p->stakes[i]); i++) {
		s = &p->stakes[i];
		b = s->charged == now ? budget_in(s) : NULL;
		if (!b || !b->device)
			continue;
		p->device = b->device;
		p->class = b->class;
		p->line = s->budget;
	}
}

/* stand_for notes for how much what a connection acknowledges has to wait, and where. */
static __always_inline void stand_for(struct paced *p, __u64 now, __u32 wire)
{
	find_line(p, now);
	if (!p->device)
		return;
	go_round(p, now, wire);
	if (p->unanswered < UNANSWERED)
		__sync_fetch_and_add(&p->unanswered, wire);
}

/* stay_until_answered lets the votes of a connection stand until what it answers now has left, and come back as more to answer. */
static __always_inline void stay_until_answered(struct paced *p, __u64 now)
{
	__u64 waits = p->leaves > now ? p->leaves - now : 0;
	struct budget *b;
	struct stake *s;
	__u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < STAKES && taken(&p->stakes[i]); i++) {
		s = &p->stakes[i];
		b = budget_in(s);
		if (b && s->charged == now)
			stay(b, &s->flow, most(waits, p->device ? b->wait : 0) + p->nearest);
	}
}

/*
 * expect says when a line of a connection's share would have brought what it gets now: ahead of the clock by what came
 * too early, and behind it by no more than a pause is worth. A bucket that was emptied, as by connections that begin
 * together, fills again because the line is slower until then. Who is held votes for no less because of that.
 *
 * It is global: so the kernel proves it once, and not for each path that leads to it.
 */
__noinline int expect(struct paced *p, __u64 now, __u64 wire, bool low)
{
	if (!p || !p->waits || !wire)
		return 0;
	if (!p->share)
		find_share(p);
	if (!p->share)
		return 0;
	if (low && p->share >= 2 * SEGMENT * SECOND / COARSE)
		wire += wire / 2;
	p->late |= !p->held;
	p->due = expected(p->due, now, wire, p->share);
	answer_apart(p, now, wire);
	stand_for(p, now, wire);
	if (p->leaves > now || p->device)
		stay_until_answered(p, now);
	return 0;
}

/*
 * passes says whether a packet goes on as it is: it is below no limit, or of what those have been paid before, or goes on its
 * connection's tab.
 */
static __always_inline bool passes(struct __sk_buff *skb, struct verdict v, struct known *at, struct budgets_of *b)
{
	__u32 wire = skb->len + ETH_HLEN;

	if (!all_of(b))
		return true;
	if (skb->gso_size)
		return false;
	if (v.link & DATAGRAMS)
		return all_settled(b, wire);
	if (!at || !on_tab(&at->tab, all_of(b), bpf_jiffies64(), wire, 1))
		return false;
	at->tab.held += may_be_held(wire);
	return true;
}

/*
 * pay_tab adds what is on a connection's tab to its packet, pays for what of that might have been held, and returns how many
 * bytes those are. It is global, as admit is.
 */
__noinline int pay_tab(struct tab *t, struct paced *p, struct load *l, __u64 now)
{
	__u32 wire, i;
	struct budget *b;

	if (!t || !p || !l)
		return 0;
	wire = l->wire;
	l->wire = t->held;
	each_budget(l, i, b) {
		pay(b, true, now, toll(b, l));
	}
	l->wire = wire;
	take_tab(t, p, l);
	return t->held;
}

/* reaches says that what a connection receives is held back by its limits. */
static __always_inline bool reaches(struct paced *p, struct load *l, __u64 now)
{
	if (p->device)
		return p->fills;
	return p->waits ? p->due > now : l->low;
}

/*
 * count has a packet, and what is on the tab of its connection, be part of that. The next tab is closed where it has hardly begun, and
 * while its limits are reached: then each packet is held by itself.
 */
static __always_inline void count(struct paced *p, struct tab *t, struct load *l, __u64 now)
{
	__u64 held = may_be_held(l->wire);
	struct budget *b;
	__u32 i;

	if (t)
		held += pay_tab(t, p, l, now);
	charge_stakes(p, l, now, l->own);
	expect(p, now, held, l->low);
	if (!held || !p->waits) { /* else what it acknowledges stands for that */
		each_budget(l, i, b) {
			owe(b, weight(b, l));
		}
	}
	if (t)
		open_tab(t, p->sent < NEWCOMER || reaches(p, l, now) ? 0 : l->tab, bpf_jiffies64() + 1,
			 p->share >> RECEIVED_MOMENTS, p->sent);
}

SEC("cgroup_skb/ingress")
int socket_ingress(struct __sk_buff *skb)
{
	struct load load = { .together = true }, *l = &load;
	struct budgets_of b = {};
	struct above above;
	struct verdict v;
	struct bpf_sock *sk;
	struct known *at;
	struct paced *p;
	__u32 limited, id;
	__u64 now;

	opaque(l);
	if (skb->ifindex == LOOPBACK)
		return PASS;
	at = known_to(skb);
	v = resolve(skb, at);
	above = bound_above(skb, at, v);
	id = v.contract;
	if (all_plain(bpf_map_lookup_elem(&contracts, &id), &above, &b, &limited)) {
		if (passes(skb, v, at, &b))
			return PASS;
		l->tab = all_of(&b);
	}
	find_budgets(l, id, &above);
	weigh(skb, l, ETH_HLEN, ETH_HLEN);
	sk = full_socket(skb);
	l->stream = carries_tcp(skb, sk);
	if (!l->stream && all_prepaid(l))
		return PASS;
	now = bpf_ktime_get_ns();
	p = window_of(sk);
	if (sk && is_tcp(sk) && sk->state == BPF_TCP_LISTEN)
		note_handshake(now, l->budgets);
	if (p) {
		await(p, now, limited);
		l->own = restrained(p, l, skb->len + ETH_HLEN, now, NEWCOMER);
	}
	if (hold_unpaced(skb, l, now) == DROP)
		return REFUSE;
	if (p)
		count(p, l->own && l->tab && at ? &at->tab : NULL, l, now);
	return PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
