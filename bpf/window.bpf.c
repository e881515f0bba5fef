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
 * What it does not promise: anything where the share is less than a few segments a
 * round trip, as it is between neighbours. TCP offers no less: those are held by
 * drops, as are connections from before the limit unless enlist asks for them.
 */
#include "shares.h"
#include "windows.h"
#include "words.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The least window, on the wire: who is offered less waits for timers. */
#define LEAST (2 * SEGMENT)

/* So many times a round trip a window is looked at anew. */
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
	if (!s->flow.vote)
		return false;
	measured = s->flow.measured;
	if (!measured)
		return true;
	s->flow.measured = 0;
	if (measured > ONE + ONE / 8)
		wider = (__u64)p->wider * ONE / measured;
	else
		wider = (__u64)p->wider * (5 * ONE - measured) / (4 * ONE);
	wider = least(wider, p->wider + ONE / 16);
	p->wider = least(most(wider, ONE), 4 * ONE);
	return true;
}

static __always_inline void set_window(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	__u64 moved, window;
	struct leave leave = {};
	struct tcp_sock *tp;
	struct paced *p;
	bool counted, anew;
	__u32 found;
	__u64 now;

	p = sk ? bpf_sk_storage_get(&windows, sk, 0, 0) : NULL;
	tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	now = bpf_ktime_get_ns();
	if (!p || !tp || now < p->heard + p->window / OFTEN)
		return;
	p->window = round_trip(ops, tp);
	if (!p->nearest || p->window < p->nearest)
		p->nearest = p->window;
	p->heard = now;
	if (p->pace)
		p->unpaced = 0;
	found = tp->window_clamp;
	if (!p->pace || found != p->pace) /* TCP widens it as its buffer grows */
		p->own = found;
	find_leave(p, &leave);
	if (within(leave.share, p->nearest) < LEAST) { /* of no limit it is 0 */
		put_back(ops, p);
		return;
	}
	counted = widen(p, leave.place);
	window = within(leave.share, p->window) * p->wider / ONE;
	if (!counted)
		window = least(window, NEWCOMER);
	window = least(payload(p, window), p->own);
	moved = window > p->pace ? window - p->pace : p->pace - window;
	anew = !p->pace || found != p->pace || p->limits != leave.limits || moved > window / 128;
	cut_paces(p, anew || window == p->own ? 0 : leave.keeps);
	if (!anew)
		return;
	p->limits = leave.limits;
	offer(ops, p, window);
}

SEC("sockops")
int window(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		hear_of(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		set_window(ops);
		break;
	case BPF_SOCK_OPS_RTT_CB: /* who asked before us may have enough of it now */
		hear_of(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		set_window(ops);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
