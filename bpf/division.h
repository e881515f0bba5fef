/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose packets a softirq that is timed handles, and how its time is divided among them.
 */
#ifndef WEIR_DIVISION_H
#define WEIR_DIVISION_H

#include "rows.h"
#include "sitting.h"

/* Of what is counted in softirqs that are timed, one in so many is timed itself. */
#define COUNTED 16
/* Longer than this, ns, nothing of ours takes, but for an interrupt in its midst. */
#define OUTLIER 2000

/* What it takes the kernel to run one of these programs, besides what that does, ns. */
const volatile __u64 dispatch = 0;

/* ran takes a run of a program off the softirq's time in which it was. */
static __always_inline void ran(struct sitting *s)
{
	s->away += dispatch;
}

/* own counts packets of a softirq that is timed for an owner. */
static __always_inline void own(struct sitting *s, enum owned owned, __u64 id, __u32 packets, __u32 bytes)
{
	struct share *share;
	__u32 i;

	for (i = 0; i < OWNERS; i++) {
		/* Else clang takes the number of owners for i, which no verifier knows the bounds of. */
		asm volatile("" : "+r"(i));
		share = &s->shares[i & (OWNERS - 1)];
		if (i >= s->owners) {
			share->owner.owned = owned;
			share->owner.id = id;
			share->packets = packets;
			share->bytes = bytes;
			s->owners = i + 1;
			return;
		}
		if (share->owner.id == id && share->owner.owned == owned) {
			share->packets += packets;
			share->bytes += bytes;
			return;
		}
	}
}

/* smooth follows what something takes, which is about the same each time. */
static __always_inline void smooth(__u64 *average, __u64 took)
{
	if (took < OUTLIER)
		*average = *average ? *average - *average / 8 + took / 8 : took;
}

/* look_at_clock finds out what that takes. */
static __always_inline void look_at_clock(struct sitting *s)
{
	__u64 then = bpf_ktime_get_ns();

	smooth(&s->clock, bpf_ktime_get_ns() - then);
}

/* counting says when the counting of a packet begins, or 0 where it is not timed. */
static __always_inline __u64 counting(struct sitting *s)
{
	return s->counted++ % COUNTED ? 0 : bpf_ktime_get_ns();
}

/* counted takes the counting of a packet off the softirq's time. Between two looks there is the time of one. */
static __always_inline void counted(struct sitting *s, __u64 began)
{
	__u64 took;

	if (began) {
		took = bpf_ktime_get_ns() - began;
		smooth(&s->count, took);
		s->away += took < OUTLIER ? took + s->clock : 0;
	} else if (s->count > s->clock) {
		s->away += s->count - s->clock;
	}
}

/* divide charges the time of a softirq to the owners of its packets. */
static __always_inline void divide(struct sitting *s, struct totals *t, __u64 ns)
{
	__u32 shift = s->softirqs.shift, work = s->work & 3, i;
	__u64 all = 0, packets, rest = ns;
	struct owner none = {};
	struct row *r;

	for (i = 0; i < OWNERS; i++)
		if (i < s->owners)
			all += s->shares[i].packets;
	if (all < s->polled)
		all = s->polled;
	for (i = 0; i < OWNERS; i++) {
		if (i >= s->owners)
			break;
		packets = s->shares[i].packets;
		rest -= ns * packets / all;
		r = charge(t, work, &s->shares[i].owner, weighed(s, ns * packets / all, shift) / WHOLE);
		if (r) {
			r->packets += weighed(s, packets, shift);
			r->bytes += weighed(s, s->shares[i].bytes, shift);
		}
		s->polled -= packets < s->polled ? packets : s->polled;
	}
	if (!s->polled && all)
		return;
	r = charge(t, work, &none, weighed(s, rest, shift) / WHOLE);
	if (r)
		r->packets += weighed(s, s->polled, shift);
}

#endif
