/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The packets of contracts with a weight in limits that they share: as many flows as that
 * weight, however many they are. A packet is in the bloc of the outermost such contract
 * below a limit.
 */
#ifndef WEIR_BLOCS_H
#define WEIR_BLOCS_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

/* The numbers of their budgets. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct member);
	__type(value, __u32);
} blocs SEC(".maps");

/* bloc_in is what a packet is charged to in a budget: its bloc there, if it has one. */
static __always_inline __u32 bloc_in(__u32 budget, __u32 member)
{
	struct member key = { .contract = member, .budget = budget };
	__u32 *bloc = member && budget ? bpf_map_lookup_elem(&blocs, &key) : NULL;

	return bloc ? *bloc : budget;
}

#endif
