// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * tcp_memory: holds what the TCP sockets of a workload take in memory to its bound.
 *
 * It runs when a connection of the scope's cgroup is established; adopt is for those that
 * were before. Where the bound has room for all that TCP may ever take for it, that is set
 * aside and nobody asks again. Else it runs before each write of the application, before
 * each packet that the connection sends, and whenever TCP has measured a round trip, and
 * fits the socket's buffers to its share (bpf/buffers.h), until it is granted what it needs
 * (bpf/grants.h). tcp_asks keeps applications from asking for more than was set aside.
 *
 * What it does not promise: that memory comes back at once. What is queued goes as
 * peers read. The kernel lets an empty socket take one full segment.
 */
#include "asks.h"
#include "grants.h"

static __always_inline struct tcp_sock *tcp_of(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	return sk ? bpf_skc_to_tcp_sock(sk) : NULL;
}

/* begin puts a connection into its pools. */
static __always_inline void begin(struct bpf_sock_ops *ops)
{
	struct tcp_sock *tp = tcp_of(ops);
	struct holding found = {}, *h;
	int word = WORD_OF_END;
	__u64 all;

	if (!tp || !find_pools(tp, &found))
		return;
	h = bpf_sk_storage_get(&holdings, tp, &found, BPF_SK_STORAGE_GET_F_CREATE);
	if (!h)
		return;
	all = largest((struct sock *)tp);
	if (afford_all(h, all)) {
		have_all(h, all);
	} else {
		word = WORD_OF_WATCHED;
		h->word = WORD_OF_MOMENTS & ~ops->bpf_sock_ops_cb_flags;
		watch_first(ops, tp, h);
	}
	hear_of(ops, word);
}

/* look fits a connection that is watched. */
static __always_inline void look(struct bpf_sock_ops *ops, enum moment moment)
{
	struct tcp_sock *tp = tcp_of(ops);
	struct holding *h = tp ? bpf_sk_storage_get(&holdings, tp, 0, 0) : NULL;

	if (!h || h->care != WATCHED)
		return;
	if (h->generation != generation) {
		let_go(h);
		if (!find_pools(tp, h))
			return;
		watch(h);
	}
	fit(ops, tp, h, moment);
	if (moment == ACKNOWLEDGED && calms(tp, h))
		grant(ops, tp, h);
}

static __always_inline void end(struct bpf_sock_ops *ops)
{
	struct tcp_sock *tp = tcp_of(ops);
	struct holding *h = tp ? bpf_sk_storage_get(&holdings, tp, 0, 0) : NULL;

	if (!h)
		return;
	let_go(h);
	bpf_sk_storage_delete(&holdings, tp);
}

SEC("sockops")
int tcp_memory(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		look(ops, ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS ? WRITES : SENDS);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		look(ops, ACKNOWLEDGED);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] == BPF_TCP_CLOSE)
			end(ops);
		break;
	}
	return 1;
}

SEC("cgroup/setsockopt")
int tcp_asks(struct bpf_sockopt *ctx)
{
	if (asks(ctx))
		ctx->optlen = sizeof(__u32);
	else if (ctx->optlen > SHOWN)
		ctx->optlen = 0; /* as it is */
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
