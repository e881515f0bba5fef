// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * enlist: asks for word of the round trips of connections that are open.
 *
 * pace is told of a connection's round trips if it asked when that was established.
 * For those from before, user space runs this once over the TCP sockets of a
 * network namespace. Where the kernel does not let a program ask later, nothing
 * changes: such connections are held by drops.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define SOL_TCP 6
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008

struct sock_common {
	int skc_unused;
};

struct bpf_iter__tcp {
	struct sock_common *sk_common;
} relocated;

/* How many connections were asked for, and of how many the kernel refused it. */
__u64 asked, refused;

SEC("iter/tcp")
int enlist(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	int flags;

	if (!tp)
		return 0;
	flags = tp->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG;
	asked++;
	if (bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		refused++;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
