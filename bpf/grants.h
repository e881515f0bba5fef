/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * To be asked takes time, which is felt where round trips are short and nothing waits:
 * requests and answers over loopback. Such a connection needs little. So once it has been
 * calm for a while it gets buffers of a fixed size, which are set aside, and is
 * not asked any more.
 *
 * It can not be asked again, so what it gets has to do for all that it may send and receive
 * later: 128 KiB each, which short round trips fill any line with.
 */
#ifndef WEIR_GRANTS_H
#define WEIR_GRANTS_H

#include "entry.h"
#include "paces.h"
#include "windows.h"
#include "words.h"

/* A longer round trip takes a hundred times as long as to be asked. */
#define SHORT_TRIP 200 /* us */
/* So many round trips that needed little make a connection calm. */
#define CALM 16
/* Little, of what waits in a queue. */
#define LITTLE (16 << 10)

/* calms counts round trips that needed little, and says whether there were enough. */
static __always_inline bool calms(struct tcp_sock *tp, struct holding *h)
{
	struct sock *sk = (struct sock *)tp;
	__u32 trip = tp->srtt_us / 8;

	if (!trip || trip >= SHORT_TRIP || sk->sk_wmem_queued > LITTLE || sk->sk_backlog.rmem_alloc.counter > LITTLE) {
		h->calm = 0;
		return false;
	}
	if (++h->calm < CALM)
		return false;
	h->calm = 0;
	return true;
}

/* limited is whether a connection is below a limit, which is told of it as well. */
static __always_inline bool limited(struct tcp_sock *tp)
{
	return bpf_sk_storage_get(&paces, tp, 0, 0) || bpf_sk_storage_get(&windows, tp, 0, 0);
}

/* grant_of is what a connection may have of the scarcest of its pools. */
static __always_inline __u64 grant_of(struct holding *h)
{
	__u64 all = LARGEST;
	__u32 i;

	each_pool(h, i)
		all = least(all, granted(h->pools[i]));
	return all;
}

/* grant sets aside what a calm connection needs, and asks for no word of it but its end. */
static __always_inline void grant(struct bpf_sock_ops *ops, struct tcp_sock *tp, struct holding *h)
{
	struct sock *sk = (struct sock *)tp;
	__u64 all = grant_of(h), each;

	if (all < LEAST_GRANT || all < LEAST_GRANT - WORKING + ever_beyond(sk) || limited(tp))
		return;
	each = (all - ever_beyond(sk)) / 2;
	set_sndbuf(ops, sk, h, least(each, least(could_send(sk, h), asked_sndbuf)));
	set_rcvbuf(ops, sk, h, least(each, least(could_receive(sk, h), asked_rcvbuf)));
	if ((__u32)sk->sk_sndbuf > each || (__u32)sk->sk_rcvbuf > each)
		return; /* they could not be set */
	let_go(h);
	have_all(h, sk->sk_sndbuf + ever_beyond(sk) + sk->sk_rcvbuf);
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~h->word);
}

#endif
