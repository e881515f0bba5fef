/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All limits that are held by departure times, and how long these let a packet wait. They
 * outlive generations, so that a change forgets nothing.
 */
#ifndef WEIR_DEPARTURES_H
#define WEIR_DEPARTURES_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "contract.h"

#define MILLISECOND 1000000ULL
#define SECOND 1000000000ULL

/*
 * How long a packet may have to wait: what a sender elsewhere needs to fill a path of such
 * a round trip, and less than it takes TCP to believe that a packet is lost.
 */
#define HORIZON (100 * MILLISECOND)
/*
 * And no longer than so many packets of its size take: fq has room for more, and a
 * packet that fq drops was charged for nothing.
 */
#define CROWD 8192
/*
 * Packets of a size always have room for one that leaves and one that waits: a packet of
 * 64 KiB takes half a second of 1 Mbit/s.
 */
#define PAIR 2
/* But fq drops what would wait for 10 s. */
#define FARTHEST (9 * SECOND)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, struct departing);
	__type(value, struct departure);
} departures SEC(".maps");

static __always_inline __u64 least(__u64 a, __u64 b) { return a < b ? a : b; }
static __always_inline __u64 most(__u64 a, __u64 b) { return a > b ? a : b; }

static __always_inline struct departure *departure_of(__u32 contract, __u32 link)
{
	struct departing key = { .contract = contract, .link = link };
	struct departure *d = bpf_map_lookup_elem(&departures, &key);

	return d && d->rate ? d : NULL;
}

/* bound is how long a packet may wait that takes so long. */
static __always_inline __u64 bound(__u64 cost)
{
	return least(most(least(HORIZON, CROWD * cost), PAIR * cost), FARTHEST);
}

#endif
