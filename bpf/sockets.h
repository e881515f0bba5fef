/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The socket that a packet is of, and what kind of socket that is.
 */
#ifndef WEIR_SOCKETS_H
#define WEIR_SOCKETS_H

#include "headers.h"

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>

/* full_socket returns the socket that a packet is of, unless it is half of one. */
static __always_inline struct bpf_sock *full_socket(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	return sk ? bpf_sk_fullsock(sk) : NULL;
}

/*
 * is_tcp tells TCP connections from the kernel's own socket for resets and
 * TIME_WAIT, a raw one that says its protocol is TCP. bpf_skc_to_mptcp_sock does
 * not: it takes what lies behind that socket for a TCP one's fields (seen on 6.1).
 */
static __always_inline bool is_tcp(struct bpf_sock *sk)
{
	return sk->type == SOCK_STREAM && sk->protocol == IPPROTO_TCP;
}

/*
 * connected says whether all packets of a socket have the same ends. A socket
 * that is connected anew sends a SYN first, in SYN_SENT.
 */
static __always_inline bool connected(struct bpf_sock *sk)
{
	return is_tcp(sk) && sk->state != BPF_TCP_SYN_SENT && sk->state != BPF_TCP_LISTEN &&
	       sk->state != BPF_TCP_CLOSE;
}

#endif
