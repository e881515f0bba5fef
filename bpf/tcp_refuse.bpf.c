// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * tcp_refuse: refuses connections that a bound of TCP memory has no room for, where its
 * contract says so.
 *
 * An application that connects is told that there are no buffers (ENOBUFS, before 5.18
 * EPERM). Whoever wants to connect to one is not answered, as where its backlog is full,
 * and tries again.
 *
 * What it does not promise: connections of one's own count from when they are established, so
 * as many as begin within one round trip may come in together. Who is not answered at the end
 * of its handshake takes itself for connected until it has tried for long enough.
 */
#include "claims.h"
#include "pools.h"

/* Verdicts of cgroup programs. */
#define PASS 1
#define REFUSE 0

#define ENOBUFS 105

/* refused says whether any pool of a socket refuses a connection. */
static __always_inline bool refused(struct tcp_sock *tp)
{
	__u64 claims = claims_of(tp);
	__u64 key;
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		key = key_of(CLAIM(claims, i));
		if (key && refuses(key))
			return true;
	}
	return false;
}

static __always_inline int connects(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	if (!tp || !refused(tp))
		return PASS;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_set_retval))
		bpf_set_retval(-ENOBUFS);
	return REFUSE;
}

SEC("cgroup/connect4")
int refuse_connect4(struct bpf_sock_addr *ctx) { return connects(ctx); }

SEC("cgroup/connect6")
int refuse_connect6(struct bpf_sock_addr *ctx) { return connects(ctx); }

/* A listener gets SYNs, and the acknowledgements that end handshakes. */
SEC("cgroup_skb/ingress")
int refuse_syn(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tp;

	if (!sk || sk->state != BPF_TCP_LISTEN)
		return PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	return tp && refused(tp) ? REFUSE : PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
