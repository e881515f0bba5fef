/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection rests while its limits let it have all that it asks for: its window is left alone, and nothing of what it
 * answers waits. That is found once in a jiffy of the kernel, and noted here; until the next one its packets need nothing
 * else that is kept of it. To look that up in its socket, for each program and each packet, takes longer than all else that is done.
 *
 * Each program has a table of its own for each CPU, with a place for all sockets whose ports come to the same number. The last one has
 * it; the others are looked up.
 *
 * What it does not promise: that a limit that is reached again has the next answer wait. It has the next one after the
 * jiffy. And a connection that is made where in memory one with the same ports has just died may be taken for that until then.
 */
#ifndef WEIR_RESTS_H
#define WEIR_RESTS_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

/* Places of a CPU, as a shift. */
#define RESTING 6

/* Who rests, and in which jiffy. */
struct resting {
	__u64 socket;	/* where it is in memory */
	__u32 ports;
	__u32 jiffy;	/* of which the lower half will do */
	__u32 contract; /* whose it is */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << RESTING);
	__type(key, __u32);
	__type(value, struct resting);
} resting SEC(".maps");

/* ports_of is both ports of a socket. */
static __always_inline __u32 ports_of(struct bpf_sock *sk) { return sk->src_port << 16 | sk->dst_port; }

/* place_of is where it stands that a socket with such ports rests, if it does; NULL: nowhere. */
static __always_inline struct resting *place_of(__u32 ports)
{
	__u32 place = ports * 0x9e3779b1 >> (32 - RESTING);

	return bpf_map_lookup_elem(&resting, &place);
}

/* rests says whether a socket rests, by its place. */
static __always_inline bool rests(struct resting *r, struct bpf_sock *sk, __u32 ports)
{
	return r->socket == (__u64)sk && r->ports == ports && r->jiffy == (__u32)bpf_jiffies64();
}

/* let_rest notes that a socket rests until this jiffy ends. */
static __always_inline void let_rest(struct resting *r, struct bpf_sock *sk, __u32 ports, __u32 contract)
{
	r->socket = (__u64)sk;
	r->ports = ports;
	r->jiffy = bpf_jiffies64();
	r->contract = contract;
}

#endif
