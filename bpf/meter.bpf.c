// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * meter: what the kernel does for packets in interrupts, whom it interrupts for that, and
 * whose packets they are.
 *
 * A softirq handles a batch of packets in whatever task it happens upon. Reading the clock
 * is what costs here, so of many softirqs one in some is timed, drawn by lot, and
 * counts for all of them: as many are timed as the clock is worth. Within one that is timed,
 * packets are counted by owner as they reach their sockets or leave for another device, and its time is
 * divided by these counts. What was polled and neither arrived nor left is nobody's. What the
 * timing and the counting take themselves is found out on the way and taken off again: softirqs
 * that are timed last longer by it, and the others do not. Where all this would still cost too much,
 * user space has the programs run for a part of the time (struct gate).
 *
 * What it takes to get into an interrupt and out of it again no tracepoint sees. User space finds out what
 * that takes here, and it is charged for each that asks for NET_RX.
 *
 * Softirqs of timers and tasklets count where a packet left or arrived in them: TCP's timers, what its small
 * queues send later, and devices such as ifb.
 *
 * Limits: other interrupts of timers and between processors count as part of what they interrupt.
 */
#include "cgroup.h"
#include "contract.h"
#include "division.h"
#include "verdicts.h"

/* The numbers of softirqs are those of /proc/softirqs' lines. */
#define TIMER_SOFTIRQ 1
#define NET_TX_SOFTIRQ 2
#define NET_RX_SOFTIRQ 3
#define TASKLET_SOFTIRQ 6
#define HRTIMER_SOFTIRQ 8

#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12

/* What the way into an interrupt and out of it takes, ns. */
const volatile __u64 way = 0;

/* How many NET_RX softirqs took how long. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DURATIONS);
	__type(key, __u32);
	__type(value, __u64);
} durations SEC(".maps");

/* How many polls had how many packets. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, POLL_SIZES);
	__type(key, __u32);
	__type(value, __u64);
} poll_sizes SEC(".maps");

/* bucket_of is the bucket of a duration: exact below eight, then eight to a power of two. */
static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 log = 0, i;
	__u64 v = ns;

	if (ns < DURATION_PARTS)
		return ns;
	for (i = 32; i; i /= 2)
		if (v >> i) {
			log += i;
			v >>= i;
		}
	i = (log - 2) * DURATION_PARTS + (ns >> (log - 3)) - DURATION_PARTS;
	return i < DURATIONS ? i : DURATIONS - 1;
}

/* work_of is what a softirq may do for packets, or WORKS: nothing. */
static __always_inline enum work work_of(__u32 vector)
{
	switch (vector) {
	case NET_RX_SOFTIRQ:
		return WORK_RX;
	case NET_TX_SOFTIRQ:
		return WORK_TX;
	case TIMER_SOFTIRQ:
	case TASKLET_SOFTIRQ:
	case HRTIMER_SOFTIRQ:
		return WORK_OTHER;
	default:
		return WORKS;
	}
}

SEC("tp_btf/softirq_entry")
int softirq_begins(__u64 *ctx)
{
	enum work work = work_of(ctx[0]);
	struct sitting *s;
	struct totals *t;

	if (work == WORKS)
		return 0;
	s = sitting();
	t = total();
	if (!s || !t)
		return 0;
	s->work = work;
	s->inside = work != WORK_OTHER;
	s->raised = 0;
	if (work != WORK_OTHER) /* else it is known at the end */
		t->runs[work & 3] += s->weight;
	if (!s->weight || !draw(&s->softirqs))
		return 0;
	s->away = 0;
	s->owners = 0;
	s->polled = 0;
	s->began = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit")
int softirq_ends(__u64 *ctx)
{
	struct sitting *s;
	struct totals *t;
	__u64 now, took, *count;
	__u32 at;

	if (work_of(ctx[0]) == WORKS)
		return 0;
	s = sitting();
	if (!s)
		return 0;
	s->inside = 0;
	if (!s->began)
		return 0;
	now = bpf_ktime_get_ns();
	took = now - s->began;
	s->began = 0;
	ran(s); /* the end of softirq_begins, and the beginning of this */
	s->away += s->clock;
	took -= s->away < took ? s->away : took;
	look_at_clock(s);
	t = total();
	if (!t)
		return 0;
	if (s->work == WORK_OTHER) {
		if (!s->owners) { /* it was about something else */
			redraw(&s->softirqs, now);
			return 0;
		}
		t->runs[WORK_OTHER] += weighed(s, 1, s->softirqs.shift);
	}
	t->timed[s->work & 3] += s->weight;
	t->stood[s->work & 3] += weighed(s, 1, s->softirqs.shift);
	t->ns[s->work & 3] += weighed(s, took, s->softirqs.shift) / WHOLE;
	if (s->work == WORK_RX) {
		at = bucket_of(took);
		count = bpf_map_lookup_elem(&durations, &at);
		if (count)
			*count += weighed(s, 1, s->softirqs.shift);
	}
	divide(s, t, took);
	redraw(&s->softirqs, now);
	return 0;
}

/* interrupted counts a hard interrupt that has asked for NET_RX, and charges what it took if it was drawn. */
static __always_inline void interrupted(struct sitting *s, struct totals *t, bool drawn, __u64 took)
{
	struct owner none = {};

	s->raised = 0;
	t->runs[WORK_IRQ] += s->weight;
	if (!drawn)
		return;
	took = weighed(s, took + way, s->irqs.shift) / WHOLE;
	t->timed[WORK_IRQ] += s->weight;
	t->stood[WORK_IRQ] += weighed(s, 1, s->irqs.shift);
	t->ns[WORK_IRQ] += took;
	charge(t, WORK_IRQ, &none, took);
}

SEC("tp_btf/irq_handler_entry")
int irq_begins(void *ctx __attribute__((unused)))
{
	struct sitting *s = sitting();

	if (!s)
		return 0;
	s->raised = 0;
	s->drawn = s->weight && draw(&s->irqs);
	s->irq = s->drawn || s->began ? bpf_ktime_get_ns() : 0;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int irq_ends(void *ctx __attribute__((unused)))
{
	struct sitting *s = sitting();
	struct totals *t = total();
	__u64 now = 0, took = 0;

	if (!s || !t)
		return 0;
	if (s->irq) {
		now = bpf_ktime_get_ns();
		took = now - s->irq;
		s->irq = 0;
		if (s->began)
			s->away += took + s->clock + way;
		took -= s->clock < took ? s->clock : took;
	}
	if (s->raised)
		interrupted(s, t, s->drawn, took);
	if (s->drawn)
		redraw(&s->irqs, now);
	s->drawn = 0;
	return 0;
}

/*
 * Another processor interrupts this one to hand it packets (RPS). What it does here is little and not
 * timed: the way is what it takes.
 */
SEC("tp_btf/call_function_single_exit")
int called(void *ctx __attribute__((unused)))
{
	struct sitting *s = sitting();
	struct totals *t = total();
	bool drawn;

	if (!s || !t || !s->raised)
		return 0;
	drawn = s->weight && draw(&s->irqs);
	interrupted(s, t, drawn, 0);
	if (drawn)
		redraw(&s->irqs, bpf_ktime_get_ns());
	return 0;
}

/*
 * NET_RX is asked for in an interrupt, which ends next, or by a task that hands packets to itself, whose softirq begins
 * next.
 */
SEC("tp_btf/softirq_raise")
int softirq_raised(__u64 *ctx)
{
	struct sitting *s;

	if (ctx[0] != NET_RX_SOFTIRQ)
		return 0;
	s = sitting();
	if (!s)
		return 0;
	s->raised = 1;
	if (s->began)
		ran(s);
	return 0;
}

SEC("tp_btf/napi_poll")
int napi_polled(__u64 *ctx)
{
	int work = ctx[1], budget = ctx[2];
	struct sitting *s = sitting();
	struct totals *t = total();
	__u32 at = work < POLL_SIZES - 1 ? work : POLL_SIZES - 1;
	__u64 *count;

	if (!s || !t || work < 0)
		return 0;
	t->polls += s->weight;
	t->packets += (__u64)work * s->weight;
	if (work >= budget)
		t->exhausted += s->weight;
	count = bpf_map_lookup_elem(&poll_sizes, &at);
	if (count)
		*count += s->weight;
	if (s->began) {
		s->polled += work;
		ran(s);
	}
	return 0;
}

SEC("cgroup_skb/ingress")
int delivered(struct __sk_buff *skb)
{
	struct sitting *s = sitting();
	__u32 packets = skb->gso_segs ? skb->gso_segs : 1;
	struct bpf_sock *sk = skb->sk;
	struct known *k;
	__u64 began;

	if (!s || !s->began)
		return 1;
	ran(s);
	if (!sk)
		return 1;
	began = counting(s);
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return 1;
	k = bpf_sk_storage_get(&verdicts, sk, 0, 0); /* what link_egress knows, where a policy is in force */
	if (k && k->verdict.contract != CONTRACT_UNCLAIMED && k->verdict.contract != CONTRACT_UNCLASSIFIED)
		own(s, OWNED_BY_CONTRACT, k->verdict.contract, packets, skb->len);
	else
		own(s, OWNED_BY_CGROUP, bpf_sk_cgroup_id(sk), packets, skb->len);
	counted(s, began);
	return 1;
}

/* segments_of is how many packets a packet is on the wire. */
static __always_inline __u32 segments_of(const struct sk_buff *skb)
{
	struct skb_shared_info *shared = (void *)(BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, end));
	__u16 segments = BPF_CORE_READ(shared, gso_segs);

	return segments ? segments : 1;
}

/* sender_of is the cgroup of the socket that sends a packet, or 0. */
static __always_inline __u64 sender_of(const struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	__u8 state;

	if (!sk)
		return 0;
	state = sk->__sk_common.skc_state;
	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV) /* half a socket: it ends before its cgroup */
		return 0;
	return BPF_CORE_READ(cgroup_of(sk), kn, id);
}

/*
 * What leaves while NET_RX is handled either came in by it, and is passed on, or is an answer, which
 * is part of what it costs to receive. NET_TX takes packets out of queues.
 */
SEC("tp_btf/net_dev_start_xmit")
int transmitted(__u64 *ctx)
{
	const struct sk_buff *skb = (void *)ctx[0];
	const struct net_device *dev = (void *)ctx[1];
	struct sitting *s = sitting();
	__u64 sender, began;

	if (!s || !s->began)
		return 0;
	ran(s);
	if (s->work == WORK_RX && !skb->skb_iif)
		return 0;
	began = counting(s);
	sender = sender_of(skb);
	if (sender)
		own(s, OWNED_BY_CGROUP, sender, segments_of(skb), skb->len);
	else if (skb->skb_iif)
		own(s, FORWARDED, (__u64)dev->nd_net.net->ns.inum << 32 | dev->ifindex, segments_of(skb), skb->len);
	else
		own(s, OWNED_BY_NOBODY, 0, segments_of(skb), skb->len);
	counted(s, began);
	return 0;
}

SEC("tp_btf/kfree_skb")
int dropped(void *ctx __attribute__((unused)))
{
	struct sitting *s = sitting();
	__u64 began;

	if (!s || !s->began)
		return 0;
	ran(s);
	if (s->work != WORK_RX)
		return 0;
	began = counting(s);
	own(s, DROPPED, 0, 1, 0);
	counted(s, began);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
