/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a connection comes into its pools, and goes.
 */
#ifndef WEIR_ENTRY_H
#define WEIR_ENTRY_H

#include "buffers.h"
#include "claims.h"

/* Published with the programs: what sockets found by another generation is stale. */
const volatile __u32 generation = 1;

/* What TCP has to tell of a connection, BPF_SOCK_OPS_*_CB_FLAG: its end, and more where it is watched. */
#define WORD_OF_END BPF_SOCK_OPS_STATE_CB_FLAG
#define WORD_OF_MOMENTS (BPF_SOCK_OPS_RTT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)
#define WORD_OF_WATCHED (WORD_OF_END | WORD_OF_MOMENTS)

/* let_go gives back what a socket has of its pools. */
static __always_inline void let_go(struct holding *h)
{
	__s64 all = h->counts;
	__u32 i;

	if (h->care == UNHEARD)
		return;
	each_pool(h, i) {
		if (h->care == WHOLE) {
			set_aside(h->pools[i], -1, -all);
		} else {
			charge(h->pools[i], -all);
			enter(h->pools[i], -1);
		}
	}
	h->sends = h->receives = h->counts = 0;
}

/* find_pools returns whether a socket is below any bound. */
static __always_inline bool find_pools(struct tcp_sock *tp, struct holding *h)
{
	__u64 claims = claims_of(tp);
	__u64 any = 0;
	__u32 i;

	h->generation = generation;
#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		h->pools[i] = key_of(CLAIM(claims, i));
		any |= h->pools[i];
	}
	return any;
}

/* afford_all says whether a connection may have all that it could ever take. */
static __always_inline bool afford_all(struct holding *h, __u64 all)
{
	__u32 i;

	each_pool(h, i)
		if (!affords(h->pools[i], all))
			return false;
	return true;
}

/* have_all sets aside what a connection may take, and lets it have that. */
static __always_inline void have_all(struct holding *h, __u64 all)
{
	__u32 i;

	h->care = WHOLE;
	h->sends = h->counts = all;
	each_pool(h, i)
		set_aside(h->pools[i], 1, all);
}

/* watch begins to fit a connection's buffers, and returns what it may receive at first. */
static __always_inline __u64 watch(struct holding *h)
{
	__u64 first = LARGEST;
	__u32 i;

	h->care = WATCHED;
	h->kept = 0;
	each_pool(h, i) {
		enter(h->pools[i], 1);
		squeezes(h->pools[i]);
		h->kept = most(h->kept, keeps(h->pools[i]));
		first = least(first, early(h->pools[i]));
	}
	return first;
}

/* watch_first also fits what the connection may receive until it has shown that it needs more. */
static __always_inline void watch_first(void *ctx, struct tcp_sock *tp, struct holding *h)
{
	__u64 first = watch(h);

	take(h, 0, lend_receive(ctx, tp, h, least(share(h) / 2, first)));
}

#endif
