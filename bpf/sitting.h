/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What each CPU is at, as the meter's programs follow it.
 */
#ifndef WEIR_SITTING_H
#define WEIR_SITTING_H

#include "lot.h"
#include "meter.h"

#include <bpf/bpf_helpers.h>

/* How many owners the packets of one batch may have; those of more are nobody's. */
#define OWNERS 16

struct share {
	struct owner owner;
	__u64 packets;
	__u64 bytes;
};

/* What a CPU is at. */
struct sitting {
	struct lot softirqs, irqs;
	__u64 began; /* the softirq that is timed; 0: none is */
	__u64 irq;   /* when the hard interrupt began that is timed; 0: none is */
	__u64 away;  /* of the softirq's time in hard interrupts and in our own programs */
	__u64 clock; /* what a look at the clock takes, smoothed */
	__u64 count; /* what it takes to count a packet, between two looks, smoothed */
	__u32 counted;
	__u32 drawn;  /* the hard interrupt is timed by lot, and not only for the softirq's sake */
	__u32 raised; /* somebody has asked for NET_RX */
	__u32 polled; /* packets that were taken from devices */
	__u32 owners;
	enum work work; /* what the softirq is, or was */
	__u32 inside;   /* it is one of NET_RX or NET_TX, whether it is timed or not */
	__u32 weight;   /* of the gate, as it was looked at last */
	__u32 window;
	struct share shares[OWNERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sitting);
} sittings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gate);
} gates SEC(".maps");

/* sitting is what this CPU is at. What began before the programs were away has ended unseen. */
static __always_inline struct sitting *sitting(void)
{
	__u32 zero = 0;
	struct sitting *s = bpf_map_lookup_elem(&sittings, &zero);
	struct gate *g = bpf_map_lookup_elem(&gates, &zero);

	if (!s || !g)
		return NULL;
	s->weight = g->weight;
	if (s->window != g->window) {
		s->window = g->window;
		s->began = s->irq = 0;
		s->softirqs.last = s->irqs.last = 0;
		s->raised = s->inside = 0;
	}
	return s;
}

/* weighed is what something that is timed stands for: one in 1 << shift, in a part of the time. */
static __always_inline __u64 weighed(struct sitting *s, __u64 value, __u32 shift)
{
	return value * s->weight << (shift & 31);
}

#endif
