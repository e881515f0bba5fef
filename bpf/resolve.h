/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose packet is this? Its socket's owner says so, or else its headers. The
 * answer is found once per socket and cached in the socket until the next
 * generation of programs, so the cost does not grow with the workloads.
 */
#ifndef WEIR_RESOLVE_H
#define WEIR_RESOLVE_H

#include "flows.h"
#include "owner.h"

/* Published with the programs: answers cached by another generation are stale. */
const volatile __u32 generation = 1;
/* Whether any rule looks at the DSCP. */
const volatile bool dscp_matters;
/* Whether the kernel leads from an MPTCP subflow to its connection (5.19). */
const volatile bool knows_mptcp;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct verdict);
} verdicts SEC(".maps");

/*
 * socket_of returns the socket that a packet is sent for. A SYN that is being
 * answered has only half a socket: the listener stands in for it. TIME_WAIT
 * keeps nothing to ask, and bpf_get_socket_uid would say "nobody".
 */
static __always_inline struct bpf_sock *socket_of(struct __sk_buff *skb)
{
	struct bpf_sock *half = skb->sk, *sk;

	if (!half)
		return NULL;
	sk = bpf_sk_fullsock(half);
	return sk ? sk : bpf_get_listener_sock(half);
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

union whole {
	struct answer answer;
	__u64 bits;
};

static __always_inline struct answer remembered(struct verdict *v)
{
	union whole w = { .bits = *(volatile __u64 *)v };

	return w.answer;
}

static __always_inline void remember(struct verdict *v, __u32 contract, enum verdict_scope scope)
{
	union whole w = { .answer = { .generation = generation, .contract = contract, .scope = scope } };

	*(volatile __u64 *)v = w.bits;
}

/*
 * verdict_of returns what is remembered, where user space can find it: of an
 * MPTCP connection it has no descriptor but the connection's own.
 */
static __always_inline struct verdict *verdict_of(struct bpf_sock *sk, struct mptcp_sock *msk)
{
	if (msk)
		return bpf_sk_storage_get(&verdicts, msk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	return bpf_sk_storage_get(&verdicts, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

/*
 * resolve says under which contract a packet goes. What the headers say is kept
 * for a connection, too, but for one link only (a tunnel or NAT gives its packets
 * other headers on the next), and not where rules look at the DSCP, which an
 * application may change at any time.
 */
static __always_inline __u32 resolve(struct __sk_buff *skb)
{
	struct bpf_sock *sk = socket_of(skb);
	struct mptcp_sock *msk = NULL;
	struct verdict *v;
	struct answer a;
	__u32 id;

	if (!sk)
		return contract_of_headers(skb);
	if (knows_mptcp && is_tcp(sk))
		msk = bpf_skc_to_mptcp_sock(sk);
	v = verdict_of(sk, msk);
	if (!v) { /* no memory */
		id = contract_of_socket(skb, sk, msk);
		return id ? id : contract_of_headers(skb);
	}
	a = remembered(v);
	if (a.generation != generation) {
		a.contract = contract_of_socket(skb, sk, msk);
		a.scope = a.contract || !tuple_count ? VERDICT_SOCKET : VERDICT_PACKET;
		remember(v, a.contract, a.scope);
	}
	if (a.scope == VERDICT_SOCKET)
		return a.contract;
	if (a.scope == VERDICT_CONNECTION && v->link == skb->ifindex && connected(sk))
		return a.contract;
	id = contract_of_headers(skb);
	if (!dscp_matters && !msk && connected(sk)) {
		v->link = skb->ifindex;
		remember(v, id, VERDICT_CONNECTION);
	} else if (a.scope == VERDICT_CONNECTION) {
		remember(v, CONTRACT_UNCLAIMED, VERDICT_PACKET); /* connected anew */
	}
	return id;
}

#endif
