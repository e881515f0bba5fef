/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection is offered a window with its handshake, before there is a socket that could be asked whose it is. Who is
 * asked for one is known where the request comes in, to the socket that listens: socket_ingress notes it there, and window
 * is asked right after that, on the same CPU.
 */
#ifndef WEIR_HANDSHAKES_H
#define WEIR_HANDSHAKES_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* When this CPU was last asked for a connection that will be below a limit of what is received, ns. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} handshakes SEC(".maps");

/* A note is of the very request that TCP looks at next, so it is not older, ns. */
#define HANDSHAKE 100000ULL

static __always_inline void note_handshake(__u64 now)
{
	__u32 zero = 0;
	__u64 *noted = bpf_map_lookup_elem(&handshakes, &zero);

	if (noted)
		*noted = now;
}

/* take_handshake says whether one was noted just now. */
static __always_inline bool take_handshake(__u64 now)
{
	__u32 zero = 0;
	__u64 *noted = bpf_map_lookup_elem(&handshakes, &zero), at;

	if (!noted)
		return false;
	at = *noted;
	*noted = 0;
	return now < at + HANDSHAKE;
}

#endif
