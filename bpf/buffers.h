/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection's buffers, fitted to its share of its pools: smaller than TCP and the
 * application want them, never larger. ctx is whatever its program may set options of.
 *
 * A buffer that is set is locked: TCP leaves it alone. So what differs from what was set is
 * the application's, and is what it gets back.
 */
#ifndef WEIR_BUFFERS_H
#define WEIR_BUFFERS_H

#include "pools.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The largest buffers that an application may ask for, bytes: twice net.core.*mem_max. */
const volatile __u32 asked_sndbuf;
const volatile __u32 asked_rcvbuf;

#define SOL_TCP 6
#define TCP_WINDOW_CLAMP 10
#define SOL_SOCKET 1
#define SO_SNDBUF 7
#define SO_RCVBUF 8
#define SOCK_SNDBUF_LOCK 1
#define SOCK_RCVBUF_LOCK 2

/* The smallest buffers that we ask for. */
#define LEAST_SEND (8 << 10)
#define LEAST_RECEIVE (4 << 10)
/* The bookkeeping of a segment. */
#define BOOKS (2 << 10)
/* The largest that are worth asking for: the kernel takes no more. */
#define LARGEST (1 << 30)

/*
 * filled is how far a segment is filled: to half of what its peer has ever offered at most. That
 * changes only between two writes, each of which we are asked about.
 */
static __always_inline __u32 filled(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return least(sk->sk_gso_max_size, most(tp->max_window / 2, tp->mss_cache));
}

/* segment is what one takes in a send queue. */
static __always_inline __u32 segment(struct sock *sk) { return filled(sk) + BOOKS; }

/*
 * beyond is what a send queue may hold beyond its buffer: a segment once begun is filled, and
 * begun anew where TCP has sent a part of it, which waits for its acknowledgement.
 */
static __always_inline __u32 beyond(struct sock *sk) { return 2 * segment(sk); }

/* ever_beyond is that of a connection that nobody watches, whose peer may offer more. */
static __always_inline __u32 ever_beyond(struct sock *sk) { return 2 * (sk->sk_gso_max_size + BOOKS); }

/* largest is all that TCP may ever take for a connection. */
static __always_inline __u64 largest(struct sock *sk)
{
	struct net *net = sk->__sk_common.skc_net.net;
	__u64 sends = most(net->ipv4.sysctl_tcp_wmem[2], asked_sndbuf);
	__u64 receives = most(net->ipv4.sysctl_tcp_rmem[2], asked_rcvbuf);

	return sends + ever_beyond(sk) + receives;
}

static __always_inline void throttled(struct holding *h)
{
	__u32 i;

	each_pool(h, i)
		throttles(h->pools[i]);
}

static __always_inline void set_sndbuf(void *ctx, struct sock *sk, struct holding *h, __u32 bytes)
{
	__u8 locks = BPF_CORE_READ_BITFIELD(sk, sk_userlocks);
	__u32 half = bytes / 2; /* the kernel doubles it */

	if ((__u32)sk->sk_sndbuf != h->sndbuf) {
		h->own_sndbuf = sk->sk_sndbuf;
		h->locks = (h->locks & ~SOCK_SNDBUF_LOCK) | (locks & SOCK_SNDBUF_LOCK);
	}
	if (!bpf_setsockopt(ctx, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half)))
		h->sndbuf = sk->sk_sndbuf; /* the kernel has a least and a largest */
}

/*
 * set_rcvbuf also lets the window follow: TCP bounds it by the buffer that a connection began
 * with, and makes it follow only a buffer that it tunes itself. Before 5.11 it stays there.
 */
static __always_inline void set_rcvbuf(void *ctx, struct sock *sk, struct holding *h, __u32 bytes)
{
	__u8 locks = BPF_CORE_READ_BITFIELD(sk, sk_userlocks);
	__u32 half = bytes / 2;

	if ((__u32)sk->sk_rcvbuf != h->rcvbuf) {
		h->own_rcvbuf = sk->sk_rcvbuf;
		h->locks = (h->locks & ~SOCK_RCVBUF_LOCK) | (locks & SOCK_RCVBUF_LOCK);
	}
	if (bpf_setsockopt(ctx, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half)))
		return;
	h->rcvbuf = sk->sk_rcvbuf;
	if (((struct tcp_sock *)sk)->window_clamp < h->rcvbuf)
		bpf_setsockopt(ctx, SOL_TCP, TCP_WINDOW_CLAMP, &h->rcvbuf, sizeof(h->rcvbuf));
}

/*
 * could_send is what a send buffer becomes, at most, if it is not fitted: as its application
 * had it, or what TCP makes of it.
 */
static __always_inline __u64 could_send(struct sock *sk, struct holding *h)
{
	struct net *net = sk->__sk_common.skc_net.net;
	__u8 locks = BPF_CORE_READ_BITFIELD(sk, sk_userlocks);
	__u32 own = sk->sk_sndbuf;

	if (own == h->sndbuf) {
		own = h->own_sndbuf;
		locks = h->locks;
	}
	return locks & SOCK_SNDBUF_LOCK ? own : most(own, net->ipv4.sysctl_tcp_wmem[2]);
}

static __always_inline __u64 could_receive(struct sock *sk, struct holding *h)
{
	struct net *net = sk->__sk_common.skc_net.net;
	__u8 locks = BPF_CORE_READ_BITFIELD(sk, sk_userlocks);
	__u32 own = sk->sk_rcvbuf;

	if (own == h->rcvbuf) {
		own = h->own_rcvbuf;
		locks = h->locks;
	}
	return locks & SOCK_RCVBUF_LOCK ? own : most(own, net->ipv4.sysctl_tcp_rmem[2]);
}

/*
 * fit_receive fits the receive buffer to what it may be: where it is too large, or where it
 * is as we made it and may grow again, to no more than grown.
 */
static __always_inline void fit_receive(void *ctx, struct sock *sk, struct holding *h, __u64 may, __u64 grown)
{
	__u32 is = sk->sk_rcvbuf, want = least(most(may, LEAST_RECEIVE), LARGEST);

	if (is > want + want / 16) {
		if (is > h->rcvbuf)
			throttled(h);
		set_rcvbuf(ctx, sk, h, want);
	} else if (is == h->rcvbuf) {
		want = least(least(grown, want), least(could_receive(sk, h), asked_rcvbuf));
		if (want > is + is / 8)
			set_rcvbuf(ctx, sk, h, want);
	}
}

/* fit_send does so with the send buffer. */
static __always_inline void fit_send(void *ctx, struct sock *sk, struct holding *h, __u64 may, __u64 grown)
{
	__u32 is = sk->sk_sndbuf, want = least(most(without(may, beyond(sk)), LEAST_SEND), LARGEST);

	if (is > want + want / 16) {
		if (is > h->sndbuf)
			throttled(h);
		set_sndbuf(ctx, sk, h, want);
	} else if (is == h->sndbuf) {
		want = least(least(grown, want), least(could_send(sk, h), asked_sndbuf));
		if (want > is + is / 8)
			set_sndbuf(ctx, sk, h, want);
	}
}

/* may_send is what a connection's send queue holds, or may take by the next write. */
static __always_inline __u32 may_send(struct sock *sk)
{
	__u32 queued = sk->sk_wmem_queued, last;

	if (queued < (__u32)sk->sk_sndbuf)
		return sk->sk_sndbuf + segment(sk);
	if (!sk->sk_write_queue.qlen)
		return queued;
	last = BPF_CORE_READ(sk, sk_write_queue.prev, len);
	return queued + without(filled(sk), last);
}

/* may_receive is what a connection's receive queue holds, or may take at once. */
static __always_inline __u32 may_receive(struct sock *sk)
{
	return most(sk->sk_rcvbuf, sk->sk_backlog.rmem_alloc.counter);
}

/*
 * lend_receive fits the receive buffer, and lends what is free where it has been filled. It
 * returns what the receive queue may take then.
 */
static __always_inline __u32 lend_receive(void *ctx, struct tcp_sock *tp, struct holding *h, __u64 may)
{
	struct sock *sk = (struct sock *)tp;
	__u64 got = tp->bytes_received;
	__u32 is = sk->sk_rcvbuf;
	bool full = got - h->got > is / 2; /* as much as the window offers in a round trip */

	fit_receive(ctx, sk, h, may, full ? 2 * (__u64)is : 0);
	if (full || (__u32)sk->sk_rcvbuf < is)
		h->got = got;
	return may_receive(sk);
}

/* lend_send does so with the send buffer, where it is half full. */
static __always_inline void lend_send(void *ctx, struct sock *sk, struct holding *h, __u64 may)
{
	__u32 is = sk->sk_sndbuf;

	fit_send(ctx, sk, h, may, (__u32)sk->sk_wmem_queued > is / 2 ? 2 * (__u64)is : 0);
}

/* What TCP is about to do with a connection that is watched. */
enum moment {
	WRITES,	      /* the application writes: it may fill the buffer before anybody is asked again */
	SENDS,	      /* a packet leaves, an acknowledgement as well */
	ACKNOWLEDGED, /* what was sent has been taken out of the queue */
};

/* fit fits both, and notes what the connection holds then or may take at once. */
static __always_inline void fit(void *ctx, struct tcp_sock *tp, struct holding *h, enum moment moment)
{
	struct sock *sk = (struct sock *)tp;
	__u32 receives, sends = h->sends;
	__u64 may = share(h);

	receives = lend_receive(ctx, tp, h, may / 2);
	if (moment != SENDS) {
		lend_send(ctx, sk, h, without(may, receives));
		sends = moment == WRITES ? may_send(sk) : 0;
	}
	take(h, most(sends, sk->sk_wmem_queued), receives);
}

#endif
