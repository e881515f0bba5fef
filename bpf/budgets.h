/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the contracts that have a limit may take, by contract. Live budgets are
 * changed in place only (relimit): a write through the table would lose what CPUs
 * charge meanwhile.
 */
#ifndef WEIR_BUDGETS_H
#define WEIR_BUDGETS_H

#include "fair.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct budget);
} budgets SEC(".maps");

#endif
