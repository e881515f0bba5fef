/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How much a paced connection sends at once. From 5.18 on TCP hands down as much to a near
 * peer as a device takes in one piece, whatever its pace, and pauses the longer after that
 * (tcp_tso_autosize): many flows of a low share would come in waves of 64 KiB each. What it may
 * have on its way bounds a piece, and near peers need little of that.
 */
#ifndef WEIR_PIECES_H
#define WEIR_PIECES_H

#include "fair.h"
#include "kernel.h"
#include "paces.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define SOL_TCP 6
#define TCP_BPF_IW 1001
#define TCP_BPF_SNDCWND_CLAMP 1002

/* What a connection may send at once, and have on its way at least: its pace for so long, ns. */
#define PIECE (4000 * MICROSECOND)
/* And while it has hardly begun: many may begin at once, each with a pace as if it were alone. */
#define FIRST_PIECE (PIECE / 4)
/* And no fewer segments than a peer acknowledges at once, without a timer. */
#define PAIR 2
/* As the kernel has it where nobody has clamped a window; as an option it has a sign. */
#define UNCLAMPED 0x7fffffff

/* hasty is what TCP sends at once though its pace does not give that, bytes: less, the farther its peer is. */
static __always_inline __u64 hasty(struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct netns_ipv4 *ns = &sk->__sk_common.skc_net.net->ipv4;
	__u32 halvings;

	if (!bpf_core_field_exists(ns->sysctl_tcp_tso_rtt_log))
		return 0;
	halvings = tp->rtt_min.s[0].v >> (ns->sysctl_tcp_tso_rtt_log & 31);
	return halvings < 32 ? sk->sk_gso_max_size >> halvings : 0;
}

/* clamp bounds a connection's congestion window; ctx is what the kernel knows it by where we run. */
static __always_inline bool clamp(void *ctx, int segments)
{
	return !bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &segments, sizeof(segments));
}

/* unbind_pieces ends that. */
static __always_inline bool unbind_pieces(void *ctx, struct paced *p)
{
	if (p->clamp && !clamp(ctx, p->clamp))
		return false;
	p->clamp = 0;
	return true;
}

/*
 * begin has a connection that has sent nothing yet begin with so many segments; of any other the kernel refuses it. TCP
 * comes down to a bound only while it fills its window, which who is paced hardly does.
 */
static __always_inline void begin(void *ctx, struct tcp_sock *tp, int segments)
{
	if ((__u32)segments < tp->snd_cwnd)
		bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_IW, &segments, sizeof(segments));
}

/* bound_pieces bounds what a connection sends at once, where TCP would send more than its pace gives meanwhile. */
static __always_inline void bound_pieces(struct bpf_sock_ops *ops, struct paced *p, struct tcp_sock *tp, __u64 pace)
{
	__u64 span = p->sent < NEWCOMER ? FIRST_PIECE : PIECE, segments;
	__u32 found = tp->snd_cwnd_clamp;

	if (hasty(tp) <= most(meanwhile(pace, span), PAIR * tp->mss_cache)) {
		unbind_pieces(ops, p);
		return;
	}
	segments = meanwhile(pace, most(span, 2 * p->window)) / most(tp->mss_cache, 1);
	segments = least(most(segments, PAIR), p->clamp ? p->clamp : least(found, UNCLAMPED));
	if (still(found, segments) || !clamp(ops, segments))
		return;
	begin(ops, tp, segments);
	if (!p->clamp)
		p->clamp = least(found, UNCLAMPED);
}

#endif
