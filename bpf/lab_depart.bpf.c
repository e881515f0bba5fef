// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * lab_depart: gives every packet that leaves a device the time at which it may, and fq
 * on that device keeps it until then.
 *
 * This is how others limit by departure times: one line of packets for all flows, which
 * may be two seconds long before it drops. Labs compare limits with it; what a policy
 * asks for is depart.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#define SECOND 1000000000ULL
/* How long a packet may have to wait. */
#define HORIZON (2 * SECOND)

/* Verdicts of tc. */
#define NEXT -1
#define DROP 2

/* What may leave, in bytes a second on the wire. */
const volatile __u64 rate = 1;

/* When the last packet may leave, ns. */
__u64 last;

SEC("tc")
int lab_depart(struct __sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns(), at;

	/* Two CPUs may read the same: as with the others, one packet of the two is free. */
	at = *(volatile __u64 *)&last + skb->wire_len * SECOND / rate;
	if (at < now)
		at = now;
	if (at > now + HORIZON)
		return DROP;
	*(volatile __u64 *)&last = at;
	/* TCP sets a time of its own where it is paced: the later one holds. */
	if (skb->tstamp < at)
		skb->tstamp = at;
	return NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
