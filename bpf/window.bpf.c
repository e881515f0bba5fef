// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * window: tells a TCP connection of how much it may ask its peer for, where what it
 * receives is below a limit.
 *
 * A peer sends no more in a round trip than the window that it is offered: so its
 * share of a limit, times the round trip, is a pace for a sender that nobody can
 * pace, and nothing has to be dropped. It runs before each packet that such a
 * connection sends, which is where the window stands. socket_ingress knows the share;
 * this is where a program may set it.
 *
 * What it does not promise: enough where the share is less than two segments a round
 * trip, as it is between neighbours. TCP offers hardly less: the bucket holds those, by
 * drops, but a sender that has no more on its way loses no more, and waits for its timer.
 * It holds connections from before the limit, too, unless enlist asks for them.
 */
#include "answers.h"
#include "claims.h"
#include "handshakes.h"
#include "rests.h"
#include "shares.h"
#include "words.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* For so long acknowledgements may wait, though the kernel finds that a round trip is shorter, ns. */
#define LAG (1000 * MICROSECOND)
/* The most of their share that neighbours may have on its way while a limit is not reached, ns. */
#define LEAD (10 * LAG)

/* So many times a round trip a window is looked at anew, but not within SELDOM, ns, unless it is a newcomer's: shares change by the tick. */
#define SELDOM (250 * MICROSECOND)
#define OFTEN 8

/* round_trip is what the receiver knows of it, ns: from its own data, or the peer's. */
static __always_inline __u64 round_trip(struct bpf_sock_ops *ops, struct tcp_sock *tp)
{
	__u64 received = tp->rcv_rtt_est.rtt_us;

	return (received ? received : ops->srtt_us) / 8 * MICROSECOND;
}

/* within is what a rate gives in a time in ns. */
static __always_inline __u64 within(__u64 rate, __u64 ns) { return rate * (ns / MICROSECOND) / (SECOND / MICROSECOND); }

static __always_inline void offer(struct bpf_sock_ops *ops, struct paced *p, __u32 window)
{
	if (!bpf_setsockopt(ops, SOL_TCP, TCP_WINDOW_CLAMP, &window, sizeof(window)))
		p->pace = window;
}

/* put_back ends our part in a connection, which asks for what it would without us. */
static __always_inline void put_back(struct bpf_sock_ops *ops, struct paced *p)
{
	if (!p->pace)
		return;
	offer(ops, p, p->own);
	p->pace = 0;
}

/*
 * widen has a window make up for what its connection uses less of its share than all:
 * acknowledgements wait, and a window is whole segments. It follows what it gives little
 * by little, since a round trip is never quite the next one, and falls at once where that
 * is far too much: who had less to send has more now. So the mean is the share, and the
 * connection counts as no more than one, though it may use more than that for a moment.
 * Until its first vote nobody knows that it is there: it returns whether that was.
 */
__noinline int widen(struct paced *p, __u32 place)
{
	__u64 wider, measured;
	struct stake *s;

	if (!p || place >= STAKES)
		return false;
	s = &p->stakes[place];
	if (!p->wider)
		p->wider = ONE;
	s->flow.exact = 1;
	if (!s->flow.said)
		return false;
	measured = s->flow.measured;
	if (!measured)
		return true;
	s->flow.measured = 0;
	if (measured > ONE + ONE / 8)
		wider = (__u64)p->wider * ONE / measured;
	else
		wider = (__u64)p->wider * (5 * ONE - measured) / (4 * ONE);
	wider = least(wider, p->wider + p->wider / 16);
	p->wider = least(most(wider, ONE), most(4, LAG / most(p->window, 1)) * ONE);
	return true;
}

/*
 * narrowest is two segments, less what TCP would round up: who is offered less than one waits
 * for timers, and of three that one is lost from the others ask for it at once, in vain.
 */
static __always_inline __u32 narrowest(struct tcp_sock *tp)
{
	__u32 unit = 1 << (BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale) & 15);

	return most(2 * tp->advmss & ~(unit - 1), unit);
}

/*
 * lead is how much of its share a neighbour may have on its way, ns: nothing while the limit is
 * reached. Its bucket is full while less comes than it allows.
 */
__noinline int lead(struct paced *p, __u32 place, __u64 now)
{
	struct budget *b;
	__u64 part;

	if (!p || place >= STAKES)
		return 0;
	b = budget_in(&p->stakes[place]);
	if (!b)
		return 0;
	part = b->stream_depth / 8;
	if (once(&b->streams_paid) > (now - least(7 * part, now)) * FRACTION)
		return 0;
	return least(part, LEAD);
}

/*
 * wide_enough is the window, in bytes of payload, for a share of a limit. Of a neighbour, whose share
 * is less than two segments a round trip, it is the narrowest while the limit is reached, since that is too
 * much already, and as wide as suits the machines while it is not. The shortest round trip tells who
 * is one: it is longer by each pause in which a sender waits for its timer.
 */
static __always_inline __u64 wide_enough(struct paced *p, struct leave *l, __u64 now, __u32 narrow)
{
	bool counted = widen(p, l->place);
	__u64 window;

	if (answers_wait(p, now)) {
		window = within(l->share, p->nearest + LINE_AHEAD);
		window = payload(p, l->share, counted ? window : least(window, NEWCOMER));
		return most((window + narrow / 2 - 1) / (narrow / 2) * (narrow / 2), narrow);
	}
	if (payload(p, l->share, within(l->share, p->nearest)) < narrow)
		window = within(l->share, lead(p, l->place, now));
	else
		window = within(l->share, p->window) * p->wider / ONE;
	return most(payload(p, l->share, counted ? window : least(window, NEWCOMER)), narrow);
}

/* waits_for is for how long what a connection acknowledges waits in a line, ns. */
static __always_inline __u64 waits_for(struct paced *p)
{
	struct budget *b = p->device ? budget_of(p->line) : NULL;

	return b ? b->wait : 0;
}

static __always_inline void set_window(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	__u64 window, way, wait;
	struct leave leave = {};
	struct resting *r;
	struct tcp_sock *tp;
	struct paced *p;
	bool anew, newcomer;
	__u32 key, found, narrow;
	__u64 now;

	if (!sk)
		return;
	key = ports_of(sk);
	r = place_of(key);
	if (!r || rests(r, sk, key))
		return;
	p = bpf_sk_storage_get(&windows, sk, 0, 0);
	if (!p)
		return;
	if (bpf_jiffies64() < p->rests) {
		let_rest(r, sk, key);
		return;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	now = tp->tcp_clock_cache;
	look_back(p, now);
	narrow = narrowest(tp);
	newcomer = p->sent < NEWCOMER;
	if (p->pace != narrow && now < p->heard + most(p->window / OFTEN, newcomer ? 0 : SELDOM)) {
		if (p->rests)
			p->rests = bpf_jiffies64() + 1;
		return;
	}
	p->window = round_trip(ops, tp);
	wait = waits_for(p);
	way = p->window > wait + MICROSECOND ? p->window - wait : MICROSECOND;
	p->usual = p->nearest ? p->usual - p->usual / 16 + way / 16 : way;
	/* A way that has become longer is found out, little by little: not while it is us who make it so, and all comes in time. */
	if (!p->nearest)
		p->nearest = way;
	else if (answers_wait(p, now))
		p->nearest = away(p->nearest, p->usual, p->device ? p->fills && wait < LINE_AHEAD / 2 : p->late);
	else
		p->nearest = least(p->nearest + p->nearest / 1024 + 1, way);
	p->late = 0;
	p->heard = now;
	if (p->pace)
		p->unpaced = 0;
	found = tp->window_clamp;
	if (!p->pace || found != p->pace) /* TCP widens it as its buffer grows */
		p->own = found;
	find_leave(p, &leave);
	p->share = leave.share;
	p->place = leave.place;
	if (!leave.share) {
		put_back(ops, p);
		return;
	}
	window = least(wide_enough(p, &leave, now, narrow), p->own);
	anew = !p->pace || found != p->pace || p->limits != leave.limits || !still(p->pace, window);
	cut_paces(p, anew || window == p->own ? 0 : leave.keeps);
	p->rests = window == p->own && !newcomer ? bpf_jiffies64() + 1 : 0; /* it asks for less than it might */
	if (!anew)
		return;
	p->limits = leave.limits;
	offer(ops, p, window);
}

/* offers_in is how many segments a limit lets a handshake offer, of so many that others do; 0: there is none. */
__noinline __u64 offers_in(__u32 budget, __u64 others, __u64 now)
{
	struct budget *b = budget_of(budget);

	if (!b)
		return others;
	return least(may_offer(b, now), others ? others : OFFER_MOST);
}

/* offers_to_claimed is how many segments the limits of what those receive who claim a socket let it offer, 0 if there is none. */
static __always_inline __u64 offers_to_claimed(__u64 claims, __u64 now)
{
	struct contract *c;
	__u64 segments = 0;
	__u32 i, id;

#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		id = CLAIM(claims, i);
		c = bpf_map_lookup_elem(&contracts, &id);
		if (!c)
			continue;
		segments = offers_in(c->together, segments, now);
		segments = offers_in(c->together_packets, segments, now);
	}
	return segments;
}

/* offers_to_noted is the same of who was noted just now. */
static __always_inline __u64 offers_to_noted(__u64 now)
{
	struct handshake *h = take_handshake(now);
	__u64 segments = 0;
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; h && i < RECEIVED; i++)
		segments = offers_in(h->budgets[i], segments, now);
	return segments;
}

/*
 * begin_narrow offers no more with a handshake than a sender would send at first, or less where many begin together: what
 * is offered can not be taken back.
 */
static __always_inline void begin_narrow(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk; /* none, of one that is accepted */
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	__u64 now = bpf_ktime_get_ns(), segments = tp ? offers_to_claimed(claims_of(tp), now) : offers_to_noted(now);

	if (segments)
		ops->reply = segments;
}

SEC("sockops")
int window(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_RWND_INIT:
		begin_narrow(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		hear_of(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		set_window(ops);
		break;
	case BPF_SOCK_OPS_RTT_CB: /* who asked before us may have enough of it now */
		hear_of(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (ops->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS) /* there is no packet yet */
			set_window(ops);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
