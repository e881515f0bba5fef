/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a connection answers tells its peer to go on. So where a link keeps packets until
 * their times of departure, or a queue of ours does (waiting.h), nothing of what it receives has to be lost, or to wait: its
 * acknowledgements leave when a line of its share would have brought what they acknowledge.
 * socket_ingress keeps that time, link_egress gives it to what the connection sends, and window
 * offers enough for that: what waits is what lets the peer go on.
 *
 * What it does not promise: anything where acknowledgements leave by other links.
 */
#ifndef WEIR_ANSWERS_H
#define WEIR_ANSWERS_H

#include <stdbool.h>

#include "waiting.h"

/* Who sent nothing by such a link for so long is not waited for, ns. */
#define ELSEWHERE 1000000000ULL

/* As the time of that: what it sent since has left by another link. Until it is known, it is 0. */
#define OTHERWISE 1
/* A packet that was sent so long ago, ns, has left the host, by a bridge too. */
#define ON_ITS_WAY 1000000ULL

/* answers_wait says whether what a connection sends has waited lately, or would have. */
static __always_inline bool answers_wait(struct paced *p, __u64 now)
{
	return p->answered && now < p->answered + ELSEWHERE + 8 * p->window;
}

/*
 * takes_more says whether what came lately is more than a limit brings, by 1/64 of what its bucket of streams collects, which
 * is about what a line holds: votes tell that a tick later, in which a neighbour sends all of the bucket.
 */
static __always_inline bool takes_more(struct budget *b, __u64 now)
{
	__u64 full = b->stream_depth - b->stream_depth / 64;

	return now > full && *(volatile __u64 *)&b->streams_paid > (now - full) * FRACTION;
}

/*
 * is_reached says whether all that a limit lets through is used, or nearly: else what is acknowledged need not wait, and what
 * has waited is told now.
 */
static __always_inline bool is_reached(struct budget *b, __u64 now)
{
	if (b && (*(volatile __u64 *)&b->load >= b->unit - b->unit / 8 || takes_more(b, now)))
		return true;
	if (b && b->wait)
		b->wait = 0;
	return false;
}

/* A connection of which nothing waits until the next jiffy: it rests (rests.h). */
#define RESTS 1

/*
 * rest has a connection rest of which nothing waits, while its window is left alone, and says whether it does. By then its
 * window has been looked at, and an answer has left here since, which is how it is known where they leave.
 */
static __always_inline __u32 rest(struct paced *p, bool nothing_waits)
{
	p->rested = nothing_waits && bpf_jiffies64() < p->rests;
	return p->rested ? RESTS : 0;
}

/*
 * answer has what a connection sends wait until what it got would have come at its share: here, by the time of its
 * departure, or in a queue of ours. It returns whether it is to wait there, LINES_UP, or the connection rests, RESTS, or 0. The first
 * one after a rest does not wait there: what came meanwhile has been told.
 */
static __always_inline __u32 answer(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct paced *p = sk ? bpf_sk_storage_get(&windows, sk, 0, 0) : NULL;
	bool waits;

	if (!p)
		return 0;
	p->answered = skb->tstamp ? skb->tstamp : bpf_ktime_get_ns(); /* TCP has just looked at the clock */
	if (p->device) {
		waits = is_reached(budget_of(p->line), p->answered);
		if (waits && !p->rested && skb->len <= OWN_LENGTH && acknowledges(skb))
			return LINES_UP;
		p->unanswered = 0; /* it is told with this */
	} else {
		waits = skb->tstamp < p->leaves;
		if (waits)
			skb->tstamp = p->leaves;
	}
	return rest(p, !waits);
}

/* look_back finds out, before a packet is sent, that the one before went by a link where nothing waits. */
static __always_inline void look_back(struct paced *p, __u64 now)
{
	if (p->answered && p->answered < p->heard && now > p->answered + ON_ITS_WAY)
		p->answered = OTHERWISE;
}

#endif
