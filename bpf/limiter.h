/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs that hold packets to limits. They are not link_egress' own, because not
 * every kernel can load both, and where nothing has a limit neither is needed.
 */
#ifndef WEIR_LIMITER_H
#define WEIR_LIMITER_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>

enum limiter_slot {
	LIMIT,	/* charges budgets; goes on in the other */
	DEPART, /* gives times of departure */
	LIMITERS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, LIMITERS);
	__type(key, __u32);
	__type(value, __u32);
} limiter SEC(".maps");

#endif
