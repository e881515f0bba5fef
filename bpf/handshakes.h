/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection is offered a window with its handshake, before there is a socket that could be asked whose it is. Who is
 * asked for one is known where the request comes in, to the socket that listens: socket_ingress notes it there, and window
 * is asked right after that, on the same CPU.
 */
#ifndef WEIR_HANDSHAKES_H
#define WEIR_HANDSHAKES_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

/* Contracts have two limits each of what is received: of bandwidth, and of packets. */
#define RECEIVED (2 * (1 + ABOVE))

/* That somebody asks for a connection which will be below limits of what is received. */
struct handshake {
	__u64 at; /* ns */
	__u32 budgets[RECEIVED];
};

/* The latest on each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct handshake);
} handshakes SEC(".maps");

/* A note is of the very request that TCP looks at next, but where that was refused: it is not older, ns. */
#define HANDSHAKE 10000000ULL

static __always_inline void note_handshake(__u64 now, __u32 *budgets)
{
	__u32 zero = 0, i;
	struct handshake *noted = bpf_map_lookup_elem(&handshakes, &zero);

	if (!noted)
		return;
	noted->at = now;
#pragma clang loop unroll(full)
	for (i = 0; i < RECEIVED; i++)
		noted->budgets[i] = budgets[i];
}

/* take_handshake is the one that was noted just now, NULL if none was. */
static __always_inline struct handshake *take_handshake(__u64 now)
{
	__u32 zero = 0;
	struct handshake *noted = bpf_map_lookup_elem(&handshakes, &zero);

	if (!noted || now >= noted->at + HANDSHAKE)
		return NULL;
	noted->at = 0;
	return noted;
}

#endif
