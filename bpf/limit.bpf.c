// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * limit: charges a packet to the limit that its contract has.
 *
 * link_egress goes on here, with the contract in cb[0]. Packets of connections that
 * are paced pass: TCP sends no sooner than its share of the limit allows. All others
 * share the part of one more flow, through an exact bucket: what is too early is
 * marked as congestion where its ends know that, and dropped where it is far too
 * early. Acknowledgements and resets are charged and never held.
 *
 * What it does not promise: a connection's first segments leave before TCP can be
 * told of a pace; one that was open before the limit, and that enlist can not reach,
 * has to bear drops.
 */
#include "budgets.h"
#include "headers.h"
#include "paces.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Published with the programs. */
const volatile __u32 generation = 1;

/* Verdicts of tc. */
#define NEXT -1
#define DROP 2

/* The most that a connection sends before it is paced, or never will be. */
#define UNPACED (1 << 16)
/* Without word for longer, somebody has ended what pace asked TCP for. */
#define DEAF (60 * SECOND)
/* A TCP packet of this size has hardly room for data beside its headers. */
#define BARE 114

#define AF_INET 2

/* tcp_socket returns the TCP connection that a packet is of. */
static __always_inline struct bpf_sock *tcp_socket(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	return sk && sk->type == SOCK_STREAM && sk->protocol == IPPROTO_TCP ? sk : NULL;
}

/* clock is the time at which TCP sent: it has just looked, and looking is dear. */
static __always_inline __u64 clock(struct bpf_sock *sk)
{
	struct tcp_sock *tp = NULL;

	if (sk && bpf_core_field_exists(tp->tcp_clock_cache))
		tp = bpf_skc_to_tcp_sock(sk);
	return tp ? tp->tcp_clock_cache : bpf_ktime_get_ns();
}

/* connection returns what is known of a connection, below this limit. */
static __always_inline struct paced *connection(struct bpf_sock *sk, __u32 contract)
{
	struct paced *p = bpf_sk_storage_get(&paces, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!p)
		return NULL;
	if (p->generation != generation || p->contract != contract) {
		__builtin_memset(&p->flow, 0, sizeof(p->flow));
		p->generation = generation;
		p->contract = contract;
		p->limit = 0; /* cut its pace anew */
		p->unpaced = 0;
		if (!p->head)
			p->head = sk->family == AF_INET ? 66 : 86; /* with timestamps */
	}
	return p;
}

/* learn sees what of its packets is payload: TCP paces that, a limit counts the wire. */
static __always_inline void learn(struct paced *p, struct __sk_buff *skb, __u32 segments)
{
	__u32 wire = skb->wire_len, heads;

	if (segments > 1 && wire > skb->len)
		p->head = (wire - skb->len) / (segments - 1);
	heads = segments * p->head;
	if (wire <= heads)
		return;
	if (p->wire > 1 << 20) {
		p->wire /= 2;
		p->payload /= 2;
	}
	p->wire += wire;
	p->payload += wire - heads;
}

/*
 * early tells the first packets of a connection, which TCP does not pace: they pass
 * until connections that come and go have taken more than the limit gives.
 */
static __always_inline bool early(struct budget *b, struct paced *p)
{
	return p->sent < NEWCOMER && once(&b->sent) >= 4 * (b->limit / 32);
}

/* bare tells packets of TCP that carry nothing worth holding. */
static __always_inline bool bare(struct __sk_buff *skb)
{
	__u8 ip[10];

	if (skb->wire_len > BARE || bpf_skb_load_bytes_relative(skb, 0, ip, sizeof(ip), BPF_HDR_START_NET))
		return false;
	return (ip[0] >> 4 == 4 ? ip[9] : ip[6]) == IPPROTO_TCP;
}

SEC("tc")
int limit(struct __sk_buff *skb)
{
	__u32 contract = skb->cb[0], wire = skb->wire_len, segments = skb->gso_segs ? skb->gso_segs : 1;
	struct budget *b = bpf_map_lookup_elem(&budgets, &contract);
	struct bpf_sock *sk = tcp_socket(skb);
	struct paced *p;
	bool held, low;
	__u64 now;

	if (!b)
		return NEXT;
	if (!sk && prepaid(b, wire))
		return NEXT;
	now = clock(sk);
	p = sk ? connection(sk, contract) : NULL;
	if (p) {
		p->charged = now;
		learn(p, skb, segments);
		if (wire > BARE && (!p->pace || now > p->heard + DEAF + 8 * p->flow.window))
			p->unpaced += wire;
		held = p->unpaced >= UNPACED || early(b, p);
		p->sent += wire;
		if (!held) {
			charge(b, &p->flow, now, wire);
			return NEXT;
		}
	}
	if (!bare(skb)) {
		low = half_empty(b, now);
		if (!conforms(b, now, wire)) {
			__sync_fetch_and_add(&b->dropped, segments);
			return DROP;
		}
		if (low && bpf_skb_ecn_set_ce(skb) == 1)
			__sync_fetch_and_add(&b->marked, segments);
		if (!sk)
			wire += grant(b, now);
	}
	b->others.exact = 1;
	b->others.load = cut(b);
	charge(b, &b->others, now, wire);
	return NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
