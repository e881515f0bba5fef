/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory that the TCP sockets of a workload hold together, and how much of it each
 * may take.
 *
 * A socket's buffers say what it may take before anybody is asked. While all of that
 * together is far below the bound nobody has to be watched. A socket that is, may take
 * half of what the others leave of soft: so a few that are busy share nearly all of it
 * evenly, and there is always something left for the next. Where they leave less, it
 * still has what it needs to work, as long as there is any below max. docs/memory.md has the
 * sums.
 */
#ifndef WEIR_POOLS_H
#define WEIR_POOLS_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct bound);
} bounds SEC(".maps");

/*
 * By contract and age, as KEY has it: they go on where a policy changes. What a socket has of a pool
 * that is gone is in nothing, also if the contract has another one by now.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct pool);
} pools SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct holding);
} holdings SEC(".maps");

/* What a socket needs to work: two segments to send with their bookkeeping, a window to receive. */
#define WORKING (148 << 10)
/* What a connection has to be granted at least: 128 KiB for each direction, and two segments. */
#define LEAST_GRANT (388 << 10)
/* The part of what is left, one of so many, that it is granted. */
#define GRANTS 64
/* The part of soft, one of so many, that the windows of all connections at their beginning have. */
#define EARLY 16

static __always_inline __u64 least(__u64 a, __u64 b) { return a < b ? a : b; }
static __always_inline __u64 most(__u64 a, __u64 b) { return a > b ? a : b; }

/* without is what is left of a sum, which may be late, where a part of it is taken out. */
static __always_inline __u64 without(__u64 sum, __u64 part) { return sum > part ? sum - part : 0; }

/* once reads what other CPUs write. */
static __always_inline __u64 once(__u64 *at) { return *(volatile __u64 *)at; }

/* in_use is what a pool's sockets hold or may take at once. */
static __always_inline __u64 in_use(struct pool *p) { return once(&p->watched) + once(&p->whole); }

/* KEY is how a pool is known: by its contract's number, and when it was made. */
#define KEY(contract, made) ((contract) | (__u64)(made) << 32)
#define KEY_CONTRACT(key) ((__u32)(key))
#define KEY_MADE(key) ((__u32)((key) >> 32))

/* bound_of returns the bound of a pool, if it is still there. */
static __always_inline struct bound *bound_of(__u64 key)
{
	__u32 id = KEY_CONTRACT(key);
	struct bound *b = key ? bpf_map_lookup_elem(&bounds, &id) : NULL;

	return b && b->max && b->made == KEY_MADE(key) ? b : NULL;
}

static __always_inline struct pool *pool_of(__u64 key) { return key ? bpf_map_lookup_elem(&pools, &key) : NULL; }

/*
 * What follows is of one pool each, takes and returns numbers, and is global: so every kernel
 * proves it once, and not for each path to it.
 */

/* key_of is how a contract's pool is known; 0 if it has no bound. */
__noinline __u64 key_of(__u32 contract)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &contract);

	return b && b->max ? KEY(contract, b->made) : 0;
}

/* portion is what a socket may take of a pool in which it has some already. */
__noinline __u64 portion(__u64 key, __u64 own)
{
	struct bound *b = bound_of(key);
	struct pool *p = pool_of(key);
	__u64 others;

	if (!b || !p)
		return ~0ULL;
	others = without(in_use(p), own);
	return most(without(b->soft, others) / 2, least(WORKING, without(b->max, others)));
}

/* affords says whether a pool has room for all that a connection could ever take. Half of
 * soft is kept for those that are watched. */
__noinline int affords(__u64 key, __u64 all)
{
	struct bound *b = bound_of(key);
	struct pool *p = pool_of(key);

	return !b || !p || (once(&p->whole) + all <= b->soft / 2 && in_use(p) + all <= b->soft);
}

/*
 * granted is what a connection may have set aside that needs little; 0 if there is no room. As
 * much as it needs where round trips are short, and a part of what is left where that is more.
 */
__noinline __u64 granted(__u64 key)
{
	struct bound *b = bound_of(key);
	struct pool *p = pool_of(key);
	__u64 left;

	if (!b || !p)
		return ~0ULL;
	left = least(without(b->soft / 2, once(&p->whole)), without(b->soft, in_use(p)));
	return left < LEAST_GRANT ? 0 : most(left / GRANTS, LEAST_GRANT);
}

/* early is what a connection may receive at first, besides all others that are there. */
__noinline __u64 early(__u64 key)
{
	struct bound *b = bound_of(key);
	struct pool *p = pool_of(key);

	return b && p ? b->soft / EARLY / most(once(&p->sockets), 1) : ~0ULL;
}

/* keeps is what a connection counts in a pool at least: who is not refused has what it needs. */
__noinline __u32 keeps(__u64 key)
{
	struct bound *b = bound_of(key);

	return b && b->refuse ? WORKING : 0;
}

/* squeezes counts a connection that a pool has no room for to work well. */
__noinline int squeezes(__u64 key)
{
	struct bound *b = bound_of(key);
	struct pool *p = pool_of(key);

	if (b && p && in_use(p) + WORKING > b->max)
		__sync_fetch_and_add(&p->squeezed, 1);
	return 0;
}

/* refuses says whether a pool takes no connection that it has no room for, and counts that. */
__noinline int refuses(__u64 key)
{
	struct bound *b = bound_of(key);
	struct pool *p = pool_of(key);

	if (!b || !p || !b->refuse || in_use(p) + WORKING <= b->max)
		return false;
	__sync_fetch_and_add(&p->refused, 1);
	return true;
}

/* enter adds connections to those that are watched; leave takes them away again. */
__noinline int enter(__u64 key, __s64 connections)
{
	struct pool *p = pool_of(key);

	if (p)
		__sync_fetch_and_add(&p->sockets, connections);
	return 0;
}

static __always_inline void peak(struct pool *p)
{
	__s64 now = in_use(p);

	if (now > (__s64)once(&p->most))
		p->most = now;
}

/* charge adds what those hold that are watched. */
__noinline int charge(__u64 key, __s64 bytes)
{
	struct pool *p = pool_of(key);

	if (!p)
		return 0;
	__sync_fetch_and_add(&p->watched, bytes);
	peak(p);
	return 0;
}

/* set_aside adds a connection that may take all that it ever could. */
__noinline int set_aside(__u64 key, __s64 connections, __s64 bytes)
{
	struct pool *p = pool_of(key);

	if (!p)
		return 0;
	__sync_fetch_and_add(&p->wholes, connections);
	__sync_fetch_and_add(&p->whole, bytes);
	peak(p);
	return 0;
}

/* throttles counts that a buffer gets smaller than TCP wants it. */
__noinline int throttles(__u64 key)
{
	struct pool *p = pool_of(key);

	if (p)
		__sync_fetch_and_add(&p->throttled, 1);
	return 0;
}

/* each_pool goes through the keys of the pools that a socket is in. */
#define each_pool(h, i) \
	_Pragma("clang loop unroll(full)") \
	for (i = 0; i <= ABOVE; i++) \
		if ((h)->pools[i])

/* share is what a socket may take of the pools that it is in: of the scarcest. */
static __always_inline __u64 share(struct holding *h)
{
	__u64 all = ~0ULL;
	__u32 i;

	each_pool(h, i)
		all = least(all, portion(h->pools[i], h->counts));
	return all;
}

/* take notes in its pools what a socket holds now, or may take at once. */
static __always_inline void take(struct holding *h, __u32 sends, __u32 receives)
{
	__u32 counts = most((__u64)sends + receives, h->kept), i;
	__s64 more = (__s64)counts - h->counts;

	h->sends = sends;
	h->receives = receives;
	h->counts = counts;
	if (!more)
		return;
	each_pool(h, i)
		charge(h->pools[i], more);
}

#endif
