/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The TCP sockets of a network namespace, one after the other. From 5.15 on the kernel
 * holds each one's lock meanwhile and lets a program set its options; before, neither.
 */
#ifndef WEIR_OPENED_H
#define WEIR_OPENED_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#define SOL_TCP 6
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008

struct bpf_iter__tcp {
	struct sock_common *sk_common;
} relocated;

static __always_inline struct tcp_sock *tcp_of(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;

	return sk ? bpf_skc_to_tcp_sock(sk) : NULL;
}

/*
 * hear asks for word of what a connection does, BPF_SOCK_OPS_*_CB_FLAG, beside what is told
 * already. The kernel takes that from 6.12 on.
 */
static __always_inline bool hear(struct tcp_sock *tp, int word)
{
	int told = tp->bpf_sock_ops_cb_flags, all = told | word;

	return all == told || !bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &all, sizeof(all));
}

#endif
