// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * samples: what tasks themselves do to send and to receive.
 *
 * That is done in calls, as many as there are messages, so nothing here runs at each:
 * some times a second the stack of what runs on a CPU is looked at. Where the innermost function that is
 * known is one that sends, the task has been sending since the last look. A softirq in the midst of a
 * call lies further in, and is counted as a second opinion on what is measured. While the meter's other programs
 * run it is known by them, since their stacks can not be followed.
 *
 * Limits: what runs with interrupts off is seen when they come on again. A stack that is deeper
 * than FRAMES is known by its innermost part.
 */
#include "rows.h"
#include "sitting.h"

/* The functions that tell what a task is at, by address; the first is before all others. */
#define RANGES 64
#define FRAMES 64

struct range {
	__u64 from, to;
	__u64 work;
};

const volatile struct range ranges[RANGES];
/* What a sample stands for, ns. */
const volatile __u64 period = 1000000;

struct stack {
	__u64 frames[FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} stacks SEC(".maps");

/* work_at is what the function at an address does, or WORKS. */
static __always_inline __u32 work_at(__u64 address)
{
	__u32 at = 0, step;

	for (step = RANGES / 2; step; step /= 2)
		if (ranges[(at + step) & (RANGES - 1)].from <= address)
			at += step;
	return address < ranges[at & (RANGES - 1)].to ? ranges[at & (RANGES - 1)].work : WORKS;
}

SEC("perf_event")
int sampled(void *ctx)
{
	struct sitting *s = sitting();
	struct totals *t = total();
	struct owner self = { .owned = OWNED_BY_CGROUP };
	struct stack *stack;
	__u32 zero = 0, work = WORKS, i;
	long size;

	stack = bpf_map_lookup_elem(&stacks, &zero);
	if (!s || !t || !stack || !(bpf_get_current_pid_tgid() >> 32))
		return 0;
	t->samples++;
	if (s->weight && s->inside) {
		t->sampled[s->work == WORK_TX ? WORK_TX : WORK_RX]++;
		return 0;
	}
	size = bpf_get_stack(ctx, stack->frames, sizeof(stack->frames), 0);
	if (size <= 0) /* in user space */
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < FRAMES && work == WORKS; i++) {
		if (i * 8 >= size)
			break;
		work = work_at(stack->frames[i]);
	}
	if (work == WORK_RX || work == WORK_TX)
		t->sampled[work == WORK_TX ? WORK_TX : WORK_RX]++;
	if (work != WORK_SEND && work != WORK_RECV && work != WORK_THREAD)
		return 0;
	self.id = bpf_get_current_cgroup_id();
	charge(t, work, &self, period);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
