// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * sums: do these programs compute what package fair does?
 *
 * It is never attached. The tests run it with steps that they make up, times
 * included, and compare each answer with Go's.
 */
#include "fair.h"

#define FLOWS 64

/* What the tests hand in as a packet. */
struct step {
	__u64 now;   /* ns */
	__u64 value; /* bytes, or a round trip in ns */
	__u64 flow;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct budget);
} budget SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct flow);
} flow SEC(".maps");

/* at finds the step and what it is about. */
static __always_inline struct budget *at(struct __sk_buff *skb, struct step *step, struct flow **f)
{
	__u32 zero = 0, number;

	if (bpf_skb_load_bytes(skb, 0, step, sizeof(*step)))
		return NULL;
	number = step->flow;
	*f = bpf_map_lookup_elem(&flow, &number);
	return *f ? bpf_map_lookup_elem(&budget, &zero) : NULL;
}

/* Returns the load for which paces are cut from then on. */
SEC("tc")
int sum_charge(struct __sk_buff *skb)
{
	struct step step;
	struct flow *f;
	struct budget *b = at(skb, &step, &f);

	if (!b)
		return 0;
	charge(b, f, step.now, step.value);
	return cut(b);
}

SEC("tc")
int sum_pace(struct __sk_buff *skb)
{
	struct step step;
	struct flow *f;
	struct budget *b = at(skb, &step, &f);

	if (!b)
		return 0;
	f->window = step.value;
	return pace_of(b, f);
}

/* Returns whether a datagram passes. */
SEC("tc")
int sum_datagram(struct __sk_buff *skb)
{
	struct step step;
	struct flow *f;
	struct budget *b = at(skb, &step, &f);

	if (!b)
		return false;
	if (prepaid(b, step.value)) {
		spend(b, step.value);
		return true;
	}
	if (!conforms(b, false, step.now))
		return false;
	pay(b, false, step.now, step.value);
	charge(b, f, step.now, step.value + grant(b, step.now));
	return true;
}

/* Returns whether a segment passes that nobody paces. */
SEC("tc")
int sum_stream(struct __sk_buff *skb)
{
	struct step step;
	struct flow *f;
	struct budget *b = at(skb, &step, &f);

	if (!b || !conforms(b, true, step.now))
		return false;
	pay(b, true, step.now, step.value);
	charge(b, f, step.now, step.value);
	return true;
}

char _license[] SEC("license") = "Dual BSD/GPL";
