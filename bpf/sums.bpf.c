// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * sums: do these programs compute what package fair does?
 *
 * It is never attached. The tests run it with steps that they make up, times
 * included, and compare each answer with Go's.
 */
#include "bucket.h"
#include "credit.h"

#define FLOWS 64

/* What the tests hand in as a packet. */
struct step {
	__u64 now;   /* ns */
	__u64 value; /* bytes, or a time in ns */
	__u64 flow;
	__u64 bloc; /* whether the flow is in the bloc */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2); /* a limit, and a bloc in it */
	__type(key, __u32);
	__type(value, struct budget);
} budgets SEC(".maps");

/* What is paid ahead: all steps are one CPU's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} ahead SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWS);
	__type(key, __u32);
	__type(value, struct flow);
} flow SEC(".maps");

/* What a step is about. */
struct about {
	struct step step;
	struct budget *b;
	struct budget *up; /* the limit that it is a bloc in, or NULL */
	struct flow *f;
	__u64 *credit;
};

/* at finds the step and what it is about. */
static __always_inline bool at(struct __sk_buff *skb, struct about *a)
{
	__u32 number, zero = 0;

	if (bpf_skb_load_bytes(skb, 0, &a->step, sizeof(a->step)))
		return false;
	number = a->step.flow;
	a->f = bpf_map_lookup_elem(&flow, &number);
	number = a->step.bloc;
	a->b = bpf_map_lookup_elem(&budgets, &number);
	a->credit = bpf_map_lookup_elem(&ahead, &number);
	a->up = number ? bpf_map_lookup_elem(&budgets, &zero) : NULL;
	return a->f && a->b;
}

/* Returns the load for which paces are cut from then on. */
SEC("tc")
int sum_charge(struct __sk_buff *skb)
{
	struct about a;

	if (!at(skb, &a))
		return 0;
	charge(a.b, a.up, a.f, a.step.now, a.step.value);
	return cut(a.b);
}

SEC("tc")
int sum_pace(struct __sk_buff *skb)
{
	struct about a;

	if (!at(skb, &a))
		return 0;
	inherit(a.b, a.up);
	a.f->window = a.step.value;
	return pace_of(a.b, a.f);
}

/* Returns the load. */
SEC("tc")
int sum_stay(struct __sk_buff *skb)
{
	struct about a;

	if (!at(skb, &a))
		return 0;
	inherit(a.b, a.up);
	stay(a.b, a.f, a.step.value);
	return load_of(a.b);
}

/* Returns whether a datagram passes. */
SEC("tc")
int sum_datagram(struct __sk_buff *skb)
{
	struct about a;
	__u64 granted;

	if (!at(skb, &a))
		return false;
	if (prepaid(a.credit, a.step.value)) {
		*a.credit -= a.step.value;
		return true;
	}
	if (!conforms(a.b, false, a.step.now))
		return false;
	pay(a.b, false, a.step.now, cost(a.b, a.step.value));
	granted = grant(a.b, a.credit, a.step.now);
	charge(a.b, a.up, a.f, a.step.now, a.step.value);
	prepay(a.b, a.up, a.f, granted);
	return true;
}

/* Returns whether a segment passes that nobody paces. */
SEC("tc")
int sum_stream(struct __sk_buff *skb)
{
	struct about a;

	if (!at(skb, &a) || !conforms(a.b, true, a.step.now))
		return false;
	pay(a.b, true, a.step.now, cost(a.b, a.step.value));
	charge(a.b, a.up, a.f, a.step.now, a.step.value);
	return true;
}

/* Returns whether first segments pass no more as they come. */
SEC("tc")
int sum_crowd(struct __sk_buff *skb)
{
	struct about a;

	return at(skb, &a) && crowded(a.up ? a.up : a.b, a.step.now);
}

/* Returns whether connections have to be paced. */
SEC("tc")
int sum_bind(struct __sk_buff *skb)
{
	struct about a;

	return at(skb, &a) && binds(a.up ? a.up : a.b, a.step.now);
}

/*
 * Returns in how many ns a line would have brought all that came: its share is in place of the flow, and when that was before in
 * place of the bloc.
 */
SEC("tc")
int sum_line(struct __sk_buff *skb)
{
	struct step s;

	if (bpf_skb_load_bytes(skb, 0, &s, sizeof(s)))
		return 0;
	return expected(s.bloc, s.now, s.value, s.flow) - s.now;
}

/*
 * Returns in how many ns somebody answers: a line's time is in place of the bytes, its share in place of the flow, when it is
 * due in place of the bloc, and what its last answer waited in place of the time.
 */
SEC("tc")
int sum_space(struct __sk_buff *skb)
{
	__u32 limit = 0;
	struct budget *b = bpf_map_lookup_elem(&budgets, &limit);
	struct step s;

	if (!b || bpf_skb_load_bytes(skb, 0, &s, sizeof(s)))
		return 0;
	return space_out(b, s.bloc, s.value, cut(b), lag(s.flow), s.now) - s.bloc;
}

/* Returns how many segments the next connection is offered. */
SEC("tc")
int sum_offer(struct __sk_buff *skb)
{
	struct about a;

	return at(skb, &a) ? may_offer(a.b, a.step.now) : 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
