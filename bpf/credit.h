/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What each CPU has been given of a budget: paid and charged before, and still to come. A
 * packet of it has nothing to settle, looks at no clock and casts no vote. It even waits for
 * nobody: a line of memory that another CPU has just written takes longer to get than all else
 * that is done for a packet.
 *
 * The programs that spend it run with softirqs off, so nothing comes between their reading and
 * writing.
 */
#ifndef WEIR_CREDIT_H
#define WEIR_CREDIT_H

#include "contract.h"

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/* By the number of the budget, in bytes. They outlive generations, as the budgets do. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} credits SEC(".maps");

/* credit_of is what this CPU has of a budget; NULL where there is no room for it. */
static __always_inline __u64 *credit_of(__u32 budget) { return bpf_map_lookup_elem(&credits, &budget); }

/* prepaid is fair.Bucket.Prepaid, but that it leaves to the caller to take the packet from there. */
static __always_inline bool prepaid(__u64 *credit, __u64 wire) { return credit && *credit >= wire; }

#endif
