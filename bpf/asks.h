/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What applications ask for as buffers of connections that nobody watches: no more than is
 * set aside for them. As much as they asked for they get back when the bound has gone.
 */
#ifndef WEIR_ASKS_H
#define WEIR_ASKS_H

#include "buffers.h"

#define SO_SNDBUFFORCE 32
#define SO_RCVBUFFORCE 33
#define SO_BUF_LOCK 72

/* The kernel shows a program no more of an option than this, and lets a longer one pass only if that is told. */
#define SHOWN 4096

/* grown is what a buffer becomes that an application asks for, bytes: the kernel doubles it. */
static __always_inline __u32 grown(__u32 asks, __u32 most_asked, bool force)
{
	__u64 bytes = 2 * (__u64)asks;

	return least(bytes, force ? LARGEST : most_asked);
}

/* ask_sndbuf returns whether an application asks for more than it may have. */
static __always_inline bool ask_sndbuf(struct holding *h, __u32 *asks, bool force)
{
	__u32 is = grown(*asks, asked_sndbuf, force), may = h->sndbuf ? h->sndbuf : asked_sndbuf;

	if (is <= may)
		return false;
	h->own_sndbuf = is;
	h->locks |= SOCK_SNDBUF_LOCK;
	*asks = may / 2;
	return true;
}

static __always_inline bool ask_rcvbuf(struct holding *h, __u32 *asks, bool force)
{
	__u32 is = grown(*asks, asked_rcvbuf, force), may = h->rcvbuf ? h->rcvbuf : asked_rcvbuf;

	if (is <= may)
		return false;
	h->own_rcvbuf = is;
	h->locks |= SOCK_RCVBUF_LOCK;
	*asks = may / 2;
	return true;
}

/* unlock keeps a buffer that we have set from being tuned again by TCP. */
static __always_inline bool unlock(struct holding *h, __u32 *locks)
{
	h->locks = *locks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
	if (h->sndbuf)
		*locks |= SOCK_SNDBUF_LOCK;
	if (h->rcvbuf)
		*locks |= SOCK_RCVBUF_LOCK;
	return true;
}

/* asks puts what an application may have in place of what it asks for, and returns whether it did. */
static __always_inline bool asks(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	__u32 *value = ctx->optval;
	struct holding *h;

	if (ctx->level != SOL_SOCKET || (void *)(value + 1) > ctx->optval_end)
		return false;
	h = sk ? bpf_sk_storage_get(&holdings, sk, 0, 0) : NULL;
	if (!h || h->care == WATCHED)
		return false;
	switch (ctx->optname) {
	case SO_SNDBUF:
	case SO_SNDBUFFORCE:
		return ask_sndbuf(h, value, ctx->optname == SO_SNDBUFFORCE);
	case SO_RCVBUF:
	case SO_RCVBUFFORCE:
		return ask_rcvbuf(h, value, ctx->optname == SO_RCVBUFFORCE);
	case SO_BUF_LOCK:
		return unlock(h, value);
	}
	return false;
}

#endif
