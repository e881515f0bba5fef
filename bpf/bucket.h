/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The buckets of a budget, for what can not be paced: the sums of Go's fair.Bucket, by the
 * budget's price and chunk.
 */
#ifndef WEIR_BUCKET_H
#define WEIR_BUCKET_H

#include "fair.h"

/* cost is what a packet has to pay in a bucket that has one share, 1/16 ns. */
static __always_inline __u64 cost(struct budget *b, __u64 wire) { return wire * once(&b->price) / ONE; }

/*
 * conforms and pay are fair.Bucket.Conforms: apart, because a packet below several
 * limits passes all of them or pays none. Who loses a race against another CPU lets its
 * packet pass and charges it all the same: the next one pays.
 */
static __always_inline bool conforms(struct budget *b, bool stream, __u64 now)
{
	return once(stream ? &b->streams_paid : &b->paid) <= now * FRACTION;
}

static __always_inline void pay(struct budget *b, bool stream, __u64 now, __u64 cost)
{
	__u64 *at = stream ? &b->streams_paid : &b->paid, depth = stream ? b->stream_depth : b->depth;
	__u64 paid = once(at), from = most(paid, (now - least(depth, now)) * FRACTION);

	if (__sync_val_compare_and_swap(at, paid, from + cost) != paid)
		__sync_fetch_and_add(at, cost);
}

/* half_empty says that a bucket's packets come faster than their share allows. */
static __always_inline bool half_empty(struct budget *b, bool stream, __u64 now)
{
	__u64 half = (stream ? b->stream_depth : b->depth) / 2;

	return once(stream ? &b->streams_paid : &b->paid) > (now - least(half, now)) * FRACTION;
}

/*
 * grant is fair.Bucket.Grant: where the bucket is fuller than half, a chunk of it
 * is paid at once, so that the packets to come need no look at the clock. The
 * caller has the flow prepay what it returns.
 */
static __always_inline __u64 grant(struct budget *b, __u64 *credit, __u64 now)
{
	__u64 chunk = once(&b->chunk);

	if (!credit || half_empty(b, false, now))
		return 0;
	__sync_fetch_and_add(&b->paid, slice(b) * FRACTION);
	*credit += chunk;
	return chunk;
}

#endif
