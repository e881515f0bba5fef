/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All limits, by a number that contracts and links name them by; 0 is none. They
 * outlive generations, so that a change forgets nothing of what goes on. Live
 * budgets are changed in place only (relimit): a write through the table would lose
 * what CPUs charge meanwhile.
 */
#ifndef WEIR_BUDGETS_H
#define WEIR_BUDGETS_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct budget);
} budgets SEC(".maps");

static __always_inline struct budget *budget_of(__u32 number)
{
	struct budget *b = number ? bpf_map_lookup_elem(&budgets, &number) : NULL;

	return b && b->limit ? b : NULL;
}

/* limit_of is the limit that a budget is a bloc in, NULL where it is a limit itself. */
static __always_inline struct budget *limit_of(struct budget *b) { return budget_of(b->within); }

#endif
