// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pace: tells TCP at which rate a connection below a limit may send.
 *
 * It runs when a connection of the scope's cgroup is established and whenever TCP has measured a round trip,
 * which may be with each packet: so it looks once in what the share gives in 244 us, or in a jiffy. limit knows the share; this is where a
 * program may set it. An application's own pace is kept where it is smaller, and is put back when the
 * connection is below no limit any more.
 *
 * What it does not promise: connections that were open before it get no word
 * unless enlist asks for them.
 */
#include "paces.h"
#include "pieces.h"
#include "rests.h"
#include "shares.h"
#include "words.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* As a pace it means none. */
#define NO_PACE 0xffffffff

/* Who hears of its peer so soon can be paced as soon as its limits bind it, us. */
#define SOON 4000

/* Who has its share is not looked at again in a jiffy before so much of it is acknowledged, as a shift of a second: 244 us. */
#define SPARED 12
/* And before so many bytes are, if that is less, where it runs free: it is not held to a share yet. */
#define SPARED_FREE (16 << 10)

static __always_inline void give(struct bpf_sock_ops *ops, struct paced *p, __u32 pace)
{
	if (!bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace)))
		p->pace = pace;
}

/* put_back ends our part in a connection that has not been charged for a while. */
static __always_inline void put_back(struct bpf_sock_ops *ops, struct paced *p)
{
	if (!p->pace || !lapsed(p))
		return;
	give(ops, p, p->own);
	unbind_pieces(ops, p);
	p->pace = 0;
}

/* application is the pace that the application has set, NO_PACE if it has none. */
static __always_inline __u32 application(struct paced *p, __u32 found)
{
	if (p->pace && found == p->pace)
		return p->own;
	return found;
}

/*
 * runs_free says that a connection need not be paced yet, as none of its limits binds it. Once it has been it is for good:
 * TCP goes on spacing it out by timers, and these can not keep a swift limit.
 */
static __always_inline bool runs_free(struct paced *p, struct tcp_sock *tp, struct leave *l)
{
	bool near = p->sent < NEWCOMER || tp->rtt_min.s[0].v <= SOON; /* the first round trip may have been an unlucky one */

	return near && (!p->pace || p->pace == p->own) && !l->binds;
}

/*
 * left_alone says whether the last look at a connection will do. A newcomer is looked at each time: it is told at once how many
 * there are beside it. Nothing is asked for here that lies elsewhere than in what is kept of the connection: to be led to TCP's own
 * clock takes as long as all else.
 */
static __always_inline bool left_alone(struct paced *p, struct bpf_sock_ops *ops)
{
	return p->pace && p->sent >= NEWCOMER && bpf_jiffies64() < p->rests && ops->bytes_acked < p->asked;
}

/* leave_alone leaves a connection alone until the jiffy ends, or so many bytes more are acknowledged. */
static __always_inline void leave_alone(struct paced *p, struct bpf_sock_ops *ops, __u64 bytes)
{
	p->rests = bpf_jiffies64() + 1;
	p->asked = ops->bytes_acked + bytes;
}

static __always_inline void set_pace(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct leave leave = {};
	__u64 pace, spared;
	struct resting *r;
	struct paced *p;
	struct tcp_sock *tp;
	__u32 key, found;
	bool anew;

	if (!sk)
		return;
	key = ports_of(sk);
	r = place_of(key);
	if (!r || (rests(r, sk, key) && ops->bytes_acked < r->asked))
		return;
	p = bpf_sk_storage_get(&paces, sk, 0, 0);
	if (p ? left_alone(p, ops) : ops->bytes_acked >= NEWCOMER) {
		let_rest(r, sk, key);
		r->asked = p ? p->asked : -1;
		return;
	}
	if (!p)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	p->window = (__u64)ops->srtt_us / 8 * MICROSECOND;
	p->heard = tp->tcp_clock_cache;
	p->full = tp->mss_cache;
	if (p->pace)
		p->unpaced = 0;
	found = least(((struct sock *)tp)->sk_max_pacing_rate, NO_PACE);
	p->own = application(p, found);
	find_leave(p, &leave);
	if (!leave.share) {
		put_back(ops, p);
		return;
	}
	spared = leave.share >> SPARED;
	pace = least(most(payload(p, leave.share, least(leave.share, MAX_PACE)), 1), p->own);
	if (runs_free(p, tp, &leave)) {
		spared = least(spared, SPARED_FREE);
		pace = p->own;
	}
	leave_alone(p, ops, spared);
	anew = !p->pace || found != p->pace || p->limits != leave.limits || !still(p->pace, pace);
	cut_paces(p, anew || pace == p->own ? 0 : leave.keeps);
	if (pace == p->own)
		unbind_pieces(ops, p);
	else
		bound_pieces(ops, p, tp, pace);
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
		hear_of(ops, BPF_SOCK_OPS_RTT_CB_FLAG);
		set_pace(ops);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		hear_of(ops, BPF_SOCK_OPS_RTT_CB_FLAG); /* who asked before us may have enough of it now */
		set_pace(ops);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
