/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs that hold packets to limits. They are not link_egress' own, because not
 * every kernel can load both, and where nothing has a limit neither is needed.
 */
#ifndef WEIR_LIMITER_H
#define WEIR_LIMITER_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>

/* Beside the link's number: limit need not look for the packet's budgets. */
#define TOLD 0x8000

enum limiter_slot {
	LIMIT,	/* charges budgets; goes on in the other */
	DEPART, /* gives times of departure */
	LIMITERS,
};

/*
 * What link_egress hands on in cb:
 *   0  the link's number and whether the packet is of a socket of UDP's, as a verdict has both; TOLD
 *      where 1 and 2 have the numbers of the packet's budgets, and not what follows; and LINES_UP
 *      where it is to wait before it leaves
 *   1  the link's own budgets, the one of packets above the other
 *   2  the contract, if anything of it counts for limits
 *   3  two of the contracts above it
 *   4  the third one, and above it the length of the headers before the network's
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, LIMITERS);
	__type(key, __u32);
	__type(value, __u32);
} limiter SEC(".maps");

#endif
