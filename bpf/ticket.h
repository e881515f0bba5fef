/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a packet that waits beside its link has at its end, for the way back. */
#ifndef WEIR_TICKET_H
#define WEIR_TICKET_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

/* The longest packet that may wait, bytes: its own and its ticket's come to WAITING_LENGTH. */
#define OWN_LENGTH 128

struct ticket {
	__u32 link;
	__u32 priority;
	__u16 length;
	__u16 budget; /* the limit in whose class it waits */
	__u32 since;  /* when it went there, in units of 1024 ns */
};

/* ticket_time is the time as tickets have it. */
static __always_inline __u32 ticket_time(void) { return bpf_ktime_get_ns() >> 10; }

_Static_assert(OWN_LENGTH + sizeof(struct ticket) == WAITING_LENGTH, "ticket");

#endif
