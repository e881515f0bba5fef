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
#include "sockets.h"
#include "verdicts.h"

/* Published with the programs: answers cached by another generation are stale. */
const volatile __u32 generation = 1;
/* The number of this program's link. */
const volatile enum link_number this_link = FIRST_LINK;
/* Whether any rule looks at the DSCP. */
const volatile bool dscp_matters;
/* Whether the kernel leads from an MPTCP subflow to its connection (5.19). */
const volatile bool knows_mptcp;

/* Whether any contract has a limit. */
const volatile bool limits;

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

union whole {
	struct verdict verdict;
	__u64 bits;
};

static __always_inline struct verdict remembered(struct known *at)
{
	union whole w = { .bits = *(volatile __u64 *)&at->verdict };

	return w.verdict;
}

static __always_inline void remember(struct known *at, __u16 contract, __u16 link)
{
	union whole w = { .verdict = { .generation = generation, .contract = contract, .link = link } };

	*(volatile __u64 *)&at->verdict = w.bits;
}

/*
 * known_of returns what is remembered, where user space can find it: of an
 * MPTCP connection it has no descriptor but the connection's own. What the kernel
 * accepts for one is not led to it at once; until then, in SYN_RECV, nothing is kept, so that
 * no subflow has a verdict of its own.
 */
static __always_inline struct known *known_of(struct bpf_sock *sk, struct mptcp_sock *msk)
{
	if (msk)
		return bpf_sk_storage_get(&verdicts, msk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (knows_mptcp && is_tcp(sk) && sk->state == BPF_TCP_SYN_RECV)
		return NULL;
	return bpf_sk_storage_get(&verdicts, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

/*
 * look_above says what else binds a socket. An MPTCP connection's subflows share a
 * verdict, and each keeps this alone.
 */
static __always_inline void look_above(struct __sk_buff *skb, struct known *at, __u16 own, struct above *above)
{
	struct bpf_sock *sk = skb->sk;

	if (at && at->above.generation == generation) {
		*above = at->above;
		return;
	}
	above->generation = generation;
	find_above(skb, own, above);
	if (!at && sk)
		at = bpf_sk_storage_get(&verdicts, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (at)
		at->above = *above;
}

/* nested says whether anything else binds a socket of a contract. */
static __always_inline bool nested(struct __sk_buff *skb, __u16 contract)
{
	struct above above = {};

	return limits && contract && find_above(skb, contract, &above);
}

/* where says which packets of its socket a verdict is for. */
static __always_inline enum link_number where(struct verdict v) { return v.link & NO_LINK; }

/* by_owner is the verdict on all packets of a socket, as its owner has it. */
static __always_inline struct verdict by_owner(struct __sk_buff *skb, struct bpf_sock *sk, struct mptcp_sock *msk)
{
	struct verdict v = { .contract = contract_of_socket(skb, sk, msk) };

	v.link = v.contract || !tuple_count ? EVERY_LINK : NO_LINK;
	if (sk->protocol == IPPROTO_UDP)
		v.link |= DATAGRAMS;
	if (nested(skb, v.contract))
		v.link |= NESTED;
	return v;
}

/* number is a verdict as find returns it: the contract, and above it its link. */
static __always_inline __u32 number(struct verdict v) { return v.contract | (__u32)v.link << 16; }

/*
 * find finds a verdict, a number. What the headers say is kept
 * for a connection, too, but for one link only (a tunnel or NAT gives its packets
 * other headers on the next), and not where rules look at the DSCP, which an
 * application may change at any time. That they do not say it is never kept: it
 * is true of one packet, such as the later fragment of a tunnel's.
 *
 * It is global, so that the kernel proves it once, and not for each path that leads to it;
 * such functions take and return numbers, beside the packet, before 5.12.
 */
__noinline __u32 find(struct __sk_buff *skb)
{
	struct bpf_sock *sk = socket_of(skb);
	struct mptcp_sock *msk = NULL;
	struct verdict v = {};
	struct known *at;

	if (!sk)
		return contract_of_headers(skb);
	if (knows_mptcp && is_tcp(sk))
		msk = bpf_skc_to_mptcp_sock(sk);
	at = known_of(sk, msk); /* NULL too if there is no memory, or it was closed before its first packet came here */
	if (at)
		v = remembered(at);
	if (v.generation != generation) {
		v = by_owner(skb, sk, msk);
		if (at)
			remember(at, v.contract, v.link);
	}
	if (where(v) == EVERY_LINK || (where(v) == this_link && connected(sk)))
		return number(v);
	v.contract = contract_of_headers(skb);
	if (!at)
		return number(v);
	if (connected(sk)) {
		if (!dscp_matters && !msk && v.contract != CONTRACT_UNCLASSIFIED)
			remember(at, v.contract, this_link);
	} else if (where(v) != NO_LINK) { /* it is connected anew */
		remember(at, CONTRACT_UNCLAIMED, NO_LINK);
	}
	return number(v);
}

/* one_connection says whether all packets of a packet's socket have the same ends. */
static __always_inline bool one_connection(struct __sk_buff *skb)
{
	struct bpf_sock *sk = full_socket(skb);

	return sk && connected(sk);
}

/* found is what find finds. */
static __always_inline struct verdict found(struct __sk_buff *skb)
{
	__u32 n = find(skb);

	return (struct verdict){ .contract = n, .link = n >> 16 };
}

/* known_to is what a packet's own socket keeps itself. */
static __always_inline struct known *known_to(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	return sk ? bpf_sk_storage_get(&verdicts, sk, 0, 0) : NULL;
}

/*
 * resolve says under which contract a packet goes. Most packets are of
 * sockets that keep the answer themselves: these are not even asked what they are.
 */
static __always_inline struct verdict resolve(struct __sk_buff *skb, struct known *at)
{
	struct verdict v;
	bool one;

	if (!skb->sk)
		return (struct verdict){ .contract = contract_of_headers(skb) };
	if (!at)
		return found(skb);
	v = remembered(at);
	if (v.generation != generation) {
		v = found(skb);
	} else if (where(v) != EVERY_LINK) {
		one = !(v.link & DATAGRAMS) && one_connection(skb);
		if (where(v) != (one ? this_link : NO_LINK))
			v = found(skb);
		else if (!one)
			v.contract = contract_of_headers(skb);
	}
	return v;
}

/* bound_above says what else binds a packet with a verdict: mostly nothing. */
static __always_inline struct above bound_above(struct __sk_buff *skb, struct known *at, struct verdict v)
{
	struct above above = {};

	if (v.link & NESTED)
		look_above(skb, at, v.contract, &above);
	return above;
}

#endif
