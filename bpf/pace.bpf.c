// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pace: tells TCP at which rate a connection below a limit may send.
 *
 * It runs when a connection of the scope's cgroup is established and whenever TCP
 * has measured a round trip. limit knows the share; this is where a program may set
 * it. An application's own pace is kept where it is smaller, and is put back
 * when the connection is below no limit any more.
 *
 * What it does not promise: connections that were open before it get no word
 * unless enlist asks for them.
 */
#include "budgets.h"
#include "paces.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* As a pace it means none. */
#define NO_PACE 0xffffffff
/* Payload of a full segment of MTU 1500 with timestamps. */
#define FULL_SEGMENT 1448

static __always_inline void give(struct bpf_sock_ops *ops, struct paced *p, __u32 pace)
{
	if (!bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace)))
		p->pace = pace;
}

/* budget_in is the budget that a stake is in, while that is the same limit. */
static __always_inline struct budget *budget_in(struct stake *s)
{
	struct budget *b = budget_of(s->budget);

	return b && b->serial == s->serial ? b : NULL;
}

/* stale says that a connection has not been charged to a budget for a while. */
static __always_inline bool stale(struct paced *p, struct stake *s)
{
	return p->heard > s->charged + SECOND + 8 * p->window;
}

/* put_back ends our part in a connection that has not been charged for a while. */
static __always_inline void put_back(struct bpf_sock_ops *ops, struct paced *p)
{
	__u32 i;

	if (!p->pace)
		return;
#pragma clang loop unroll(full)
	for (i = 0; i < STAKES; i++) {
		if (!stale(p, &p->stakes[i]))
			return;
	}
	give(ops, p, p->own);
	p->pace = 0;
}

/* application is the pace that the application has set, NO_PACE if it has none. */
static __always_inline __u32 application(struct paced *p, unsigned long found)
{
	if (p->pace && found == p->pace)
		return p->own;
	return least(found, NO_PACE);
}

/* payload is what of a rate on the wire is payload of the connection. */
static __always_inline __u64 payload(struct paced *p, __u64 rate)
{
	if (p->payload)
		return rate * p->payload / p->wire;
	return rate * FULL_SEGMENT / (FULL_SEGMENT + p->head);
}

/*
 * share_in is the connection's share of a budget in bytes on the wire. Of packets that
 * is what as many of its latest ones weighed.
 */
static __always_inline __u64 share_in(struct paced *p, struct budget *b)
{
	__u64 rate = share(b);

	if (b->packets)
		rate = rate * (p->mean ? p->mean : (FULL_SEGMENT + p->head) << 10) / ((__u64)SEGMENT << 10);
	return most(rate, 1);
}

/* What the limits of a connection leave it. */
struct leave {
	__u64 share;  /* the least of its shares, on the wire; 0: it is below no limit */
	__u64 limits; /* their sum */
	__u32 budget; /* whose share is the least */
};

/*
 * look_at sees what one stake leaves. It is global, as cut_stake is: so the kernel proves
 * them once, and not for each stake.
 */
__noinline int look_at(struct paced *p, __u32 place, struct leave *l)
{
	struct budget *b;
	struct stake *s;
	__u64 rate;

	if (!p || !l || place >= STAKES)
		return 0;
	s = &p->stakes[place];
	b = budget_in(s);
	if (!b || stale(p, s))
		return 0;
	inherit(b, limit_of(b));
	s->flow.window = p->window;
	l->limits += b->limit;
	rate = share_in(p, b);
	if (l->share && l->share <= rate)
		return 0;
	l->share = rate;
	l->budget = s->budget;
	return 0;
}

/* cut_stake tells a budget that a connection's pace is cut for its load of now. */
__noinline int cut_stake(struct paced *p, __u32 place)
{
	struct budget *b;
	struct stake *s;

	if (!p || place >= STAKES)
		return 0;
	s = &p->stakes[place];
	b = budget_in(s);
	if (b && !stale(p, s))
		cut_pace(b, &s->flow);
	return 0;
}

static __always_inline void find_leave(struct paced *p, struct leave *l)
{
	__u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < STAKES; i++)
		look_at(p, i, l);
}

/*
 * cut_paces tells the budgets of a connection that its pace is cut for their loads
 * of now: all of them but one whose share it keeps. So it votes by the share that it
 * leaves wherever another limit, or the application, lets it have less.
 */
static __always_inline void cut_paces(struct paced *p, __u32 keeps)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < STAKES; i++) {
		if (p->stakes[i].budget != keeps)
			cut_stake(p, i);
	}
}

static __always_inline void set_pace(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct leave leave = {};
	__u64 moved, pace;
	unsigned long found;
	struct paced *p;
	struct sock *full;
	bool anew;

	p = sk ? bpf_sk_storage_get(&paces, sk, 0, 0) : NULL;
	full = sk ? (struct sock *)bpf_skc_to_tcp_sock(sk) : NULL;
	if (!p || !full)
		return;
	p->window = (__u64)ops->srtt_us / 8 * MICROSECOND;
	p->heard = bpf_ktime_get_ns();
	if (p->pace)
		p->unpaced = 0;
	found = full->sk_max_pacing_rate;
	p->own = application(p, found);
	find_leave(p, &leave);
	if (!leave.share) {
		put_back(ops, p);
		return;
	}
	pace = least(most(payload(p, least(leave.share, MAX_PACE)), 1), p->own);
	moved = pace > p->pace ? pace - p->pace : p->pace - pace;
	anew = !p->pace || found != p->pace || p->limits != leave.limits || moved > pace / 128;
	cut_paces(p, anew || pace == p->own ? 0 : leave.budget);
	if (!anew)
		return;
	p->limits = leave.limits;
	give(ops, p, pace);
}

SEC("sockops")
int pace(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG);
		set_pace(ops);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		set_pace(ops);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
