/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A socket rests while nothing of its packets depends on what would take long to find: its limits let it have all that it asks
 * for, or it has none. Datagrams are prepaid then. What a connection answers does not wait, its window and its pace are left alone, and
 * what it sends goes on its tab, which lies here meanwhile. That is found once in a jiffy of the kernel, and noted; until the next one
 * its packets need nothing else that is kept of it. To look that up in its socket, for each program and each packet, takes longer than
 * all else that is done.
 *
 * Each program has a table of its own for each CPU, with a place for all sockets whose keys begin alike. The last one has
 * it, unless there is something on the tab of the one before; the others are looked up.
 *
 * What it does not promise: that a limit that is reached again has the next answer wait. It has the next one after the
 * jiffy. A socket that is made where in memory one of the same key has just died may be taken for that until then. And what lies on the
 * tab of a connection that goes on by another CPU is charged if it comes back soon enough.
 */
#ifndef WEIR_RESTS_H
#define WEIR_RESTS_H

#include "tab.h"

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

/* Places of a CPU, as a shift. */
#define RESTING 6

/* What lies on the tab of somebody who does not send here for so long is not waited for, jiffies: 1 s or more. */
#define FORGOTTEN 1024

/* Who rests, and in which jiffy. */
struct resting {
	__u64 socket;	/* where it is in memory */
	__u32 key;	/* and what else tells it from others, at any time */
	__u32 jiffy;	/* of which the lower half will do */
	__u16 contract; /* whose it is */
	__u16 together;	/* the budget that this had by itself */
	__u8 limited;	/* and what else of it counts for limits, but for what waits */
	__u8 datagrams;	/* they are prepaid, and go on no tab */
	__u16 pad;
	struct tab tab;	/* its budgets; and what it sent since, and has not been charged for */
	__u64 asked;	/* it rests until so many of its bytes are acknowledged: of pace */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << RESTING);
	__type(key, __u32);
	__type(value, struct resting);
} resting SEC(".maps");

/* ports_of is both ports of a socket, mixed. */
static __always_inline __u32 ports_of(struct bpf_sock *sk) { return (sk->src_port << 16 | sk->dst_port) * 0x9e3779b1; }

/* place_of is where it stands that a socket of such a key rests, if one does; NULL: nowhere. */
static __always_inline struct resting *place_of(__u32 key)
{
	__u32 place = key >> (32 - RESTING);

	return bpf_map_lookup_elem(&resting, &place);
}

/* is_of says whether a place is a socket's, which may rest no more. */
static __always_inline bool is_of(struct resting *r, struct bpf_sock *sk, __u32 key) { return r->socket == (__u64)sk && r->key == key; }

/* rests says whether a socket rests, by its place. */
static __always_inline bool rests(struct resting *r, struct bpf_sock *sk, __u32 key)
{
	return is_of(r, sk, key) && r->jiffy == (__u32)bpf_jiffies64();
}

/* is_taken says whether there is something on the tab of the socket that has a place. */
static __always_inline bool is_taken(struct resting *r) { return r->tab.bytes && (__u32)bpf_jiffies64() - r->jiffy < FORGOTTEN; }

/* let_rest notes that a socket rests until this jiffy ends. */
static __always_inline void let_rest(struct resting *r, struct bpf_sock *sk, __u32 key)
{
	r->socket = (__u64)sk;
	r->key = key;
	r->jiffy = bpf_jiffies64();
}

#endif
