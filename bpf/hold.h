/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * hold: charges a packet to the limits that it is below, at the link that it
 * leaves or enters, or where its socket gets it.
 *
 * Packets of connections that are paced pass: TCP sends no sooner than its share of
 * each limit allows. All datagrams share the part of one more flow, and so does all
 * TCP that nobody paces: each kind goes through an exact bucket in every limit. What
 * is too early is marked as congestion where its ends know that, and dropped where it
 * is far too early for any limit; then none of them is charged. Acknowledgements and
 * resets are charged and never held.
 *
 * What it does not promise: a connection's first segments leave before TCP can be
 * told of a pace; one that was open before the limit, and that enlist can not reach,
 * has to bear drops.
 */
#ifndef WEIR_HOLD_H
#define WEIR_HOLD_H

#include "bucket.h"
#include "budgets.h"
#include "credit.h"
#include "paces.h"
#include "sockets.h"
#include "stakes.h"
#include "tab.h"
#include "verdicts.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Verdicts of tc. */
#define NEXT -1
#define DROP 2

/* The most that a connection of this host sends before it is paced, or never will be. */
#define UNPACED (1 << 16)
/* Of what has sent so much little would be missed. */
#define STEADY (1 << 20)
/* Without word for longer, somebody has ended what pace asked TCP for. */
#define DEAF (60 * SECOND)
/* Of so many of its latest segments a connection knows the mean. */
#define MEMORY 64

/* A connection that sends nothing for so long has paused, ns. */
#define PAUSE (1000 * MICROSECOND)
/* A TCP packet of this size has hardly room for data beside its headers. */
#define BARE 114

#define AF_INET 2

/* A packet that is to be charged, and to what. */
struct load {
	__u32 wire; /* bytes, the headers of all its segments included */
	__u32 segments;
	__u32 hook;		  /* the link's index, times two; one more at its ingress */
	bool datagram;		  /* it is of a socket of UDP's */
	bool stream;		  /* it is TCP */
	bool together;		  /* all TCP goes through one bucket, whoever holds it back */
	bool low;		  /* a bucket that it went through was less than half full */
	bool own;		  /* its connection is charged for it, and not the flow of its kind */
	__u64 tab;		  /* in which budgets its connection may have a tab; 0: it may not */
	__u32 budgets[BOUNDS]; /* their numbers; from the first 0 on there is none */
} __attribute__((aligned(8))); /* so that it is zeroed by the word, for every packet */

/*
 * opaque hides from the compiler where a load lies: knowing that, it adds to the
 * address by OR, which the verifier does not follow.
 */
#define opaque(l) asm volatile("" : "+r"(l))

/* at is the budget in a place of a load. */
static __always_inline struct budget *at(struct load *l, __u32 place)
{
	return place < BOUNDS ? budget_of(l->budgets[place]) : NULL;
}

/* credit_at is what this CPU has been given of the budget in a place of a load. */
static __always_inline __u64 *credit_at(struct load *l, __u32 place)
{
	return place < BOUNDS ? credit_of(l->budgets[place]) : NULL;
}

#define each_budget(l, i, b) \
	for (i = 0; i < BOUNDS && (l)->budgets[i]; i++) \
		if ((b = at(l, i)))

/* weight is what a budget counts a packet as. */
static __always_inline __u64 weight(struct budget *b, struct load *l)
{
	return b->packets ? (__u64)l->segments * SEGMENT : l->wire;
}

/* clock is the time at which TCP sent: it has just looked, and looking is dear. */
static __always_inline __u64 clock(struct bpf_sock *sk)
{
	struct tcp_sock *tp = NULL;

	if (sk && bpf_core_field_exists(tp->tcp_clock_cache))
		tp = bpf_skc_to_tcp_sock(sk);
	return tp ? tp->tcp_clock_cache : bpf_ktime_get_ns();
}

/* connection returns what is known of a connection, in a table of such. */
static __always_inline struct paced *connection(void *table, struct bpf_sock *sk)
{
	struct paced *p = bpf_sk_storage_get(table, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (p && !p->head)
		p->head = sk->family == AF_INET ? 66 : 86; /* with timestamps */
	return p;
}

/* average keeps the mean of what a connection's segments weigh: TCP paces bytes. */
static __always_inline void average(struct paced *p, struct load *l)
{
	__u64 n = least(l->segments, MEMORY), each = (__u64)l->wire << 10;

	if (n > 1)
		each /= l->segments;
	p->mean = p->mean ? (p->mean * (MEMORY - n) + each * n) / MEMORY : each;
}

/* age forgets by half what is a second old, or beyond what is worth remembering. */
static __always_inline void age(struct paced *p, __u64 now)
{
	__u64 halvings = p->wire > RECENT;

	if (now >= p->aged + SECOND) {
		halvings = least((now - p->aged) / SECOND, 31);
		p->aged = now;
	}
	p->wire >>= halvings;
	p->payload >>= halvings;
}

/* learn sees what of its packets is payload: TCP paces that, a limit counts the wire. */
static __always_inline void learn(struct paced *p, struct load *l, __u32 length, __u64 now)
{
	__u32 heads;

	average(p, l);
	if (l->segments > 1 && l->wire > length)
		p->head = (l->wire - length) / (l->segments - 1);
	heads = l->segments * p->head;
	if (l->wire <= heads)
		return;
	age(p, now);
	p->wire += l->wire;
	p->payload += l->wire - heads;
}

/*
 * charge_stake charges a packet of a connection to one budget: to its own flow there,
 * or, where nobody holds that back yet, to no more than its memory, so that pace
 * knows what to pace it for, and that it is no newcomer by the time it is held back. It is global, as charge_others is: so the
 * kernel proves it once, and not for each path that leads to it.
 */
__noinline int charge_stake(struct paced *p, struct load *l, __u32 place, __u64 now, bool restrained)
{
	struct budget *b;
	struct stake *s;
	__u32 budget;

	if (!p || !l || place >= BOUNDS)
		return 0;
	budget = l->budgets[place];
	b = budget_of(budget);
	if (!b)
		return 0;
	s = stake_in(p, budget, b->serial);
	s->charged = now;
	s->hook = l->hook;
	s->flow.held = p->held && p->device ? FILLS : p->held;
	s->flow.app_limited = p->app_limited;
	if (restrained)
		charge(b, limit_of(b), &s->flow, now, weight(b, l));
	else
		s->flow.fresh += weight(b, l);
	return 0;
}

/*
 * unpaced tells what TCP does not hold back: connections that nobody paces; and the
 * first packets of any, which pass until a limit is crowded: where answers wait the connection is held back from the first. Patience is
 * how many bytes one may send before it is paced.
 */
static __always_inline bool unpaced(struct paced *p, struct load *l, __u64 now, __u64 patience)
{
	struct budget *b, *up;
	__u32 i;

	if (l->wire > BARE && (!p->pace || now > p->heard + DEAF + 8 * p->window))
		p->unpaced += l->wire;
	if (p->unpaced >= patience)
		return true;
	if (p->waits || p->sent >= NEWCOMER)
		return false;
	each_budget(l, i, b) {
		up = limit_of(b);
		if (crowded(up ? up : b, now))
			return true;
	}
	return false;
}

/*
 * carries_tcp asks the headers of all that may be TCP without a connection's socket: what
 * is forwarded, and what answers for connections that are gone or not there yet.
 */
static __always_inline bool carries_tcp(struct __sk_buff *skb, struct bpf_sock *sk)
{
	__u8 ip[10];

	if (sk && (is_tcp(sk) || sk->protocol == IPPROTO_UDP))
		return is_tcp(sk);
	if (bpf_skb_load_bytes_relative(skb, 0, ip, sizeof(ip), BPF_HDR_START_NET))
		return false;
	return (ip[0] >> 4 == 4 ? ip[9] : ip[6]) == IPPROTO_TCP;
}

/*
 * bare tells packets that carry nothing worth holding: acknowledgements, resets, and
 * what neighbours say to find each other.
 */
static __always_inline bool bare(struct __sk_buff *skb, struct load *l)
{
	if (l->wire > BARE)
		return false;
	return l->stream || skb->protocol == bpf_htons(ETH_P_ARP);
}

/* give_back undoes what all_prepaid took from the first budgets. */
__noinline int give_back(struct load *l, __u32 taken)
{
	struct budget *b;
	__u64 *credit;
	__u32 i;

	if (!l)
		return 0;
	each_budget(l, i, b) {
		credit = credit_at(l, i);
		if (credit && i < taken)
			*credit += weight(b, l);
	}
	return 0;
}

/* all_prepaid takes a packet from what all its budgets have been paid before, or from none. */
static __always_inline bool all_prepaid(struct load *l)
{
	struct budget *b;
	__u64 *credit;
	__u32 i;

	each_budget(l, i, b) {
		credit = credit_at(l, i);
		if (!prepaid(credit, weight(b, l))) {
			give_back(l, i);
			return false;
		}
		*credit -= weight(b, l);
	}
	return true;
}

/*
 * owe has the acknowledgements that wait in a limit's class stand for what came without any, too: datagrams, and what is told
 * at once. Where none wait it is of no more than a 32nd of a second.
 */
static __always_inline void owe(struct budget *b, __u64 bytes)
{
	if (b->device && *(volatile __s64 *)&b->unheld < (__s64)(b->limit / 32))
		__sync_fetch_and_add(&b->unheld, bytes);
}

/* charge_others charges a packet to the flow of its kind, which nobody paces, and what this CPU has paid ahead with it. */
__noinline int charge_others(__u32 budget, bool stream, __u64 now, __u64 weight, __u64 ahead)
{
	struct budget *b = budget_of(budget), *up;
	struct flow *f;

	if (!b)
		return 0;
	up = limit_of(b);
	inherit(b, up);
	f = stream ? &b->streams : &b->others;
	f->exact = 1;
	f->load = cut(b);
	charge(b, up, f, now, weight);
	if (ahead)
		prepay(b, up, f, ahead);
	if (!stream) /* of a stream its receiver knows what is acknowledged in vain */
		owe(b, weight + ahead);
	return 0;
}

/*
 * toll is what a packet has to pay in a budget, 1/16 ns: as one of those that have a
 * share together, or where all TCP goes through the bucket, of what datagrams leave.
 */
static __always_inline __u64 toll(struct budget *b, struct load *l)
{
	__u64 part, taken;

	if (!l->together || !l->stream)
		return cost(b, weight(b, l));
	part = share(b);
	taken = stands(b, &b->others) ? part * once(&b->others.vote) / ONE : 0;
	return weight(b, l) * SECOND * FRACTION / most(most(b->limit - least(taken, b->limit), part), 1);
}

/*
 * admit asks the buckets of all budgets, and takes from all of them or from none:
 * from what is paid already where there is enough. It is global: so the kernel proves it once, and not for each path that
 * leads to it.
 */
__noinline int admit(struct __sk_buff *skb, struct load *l, __u64 now)
{
	bool marked;
	struct budget *b;
	__u64 *credit;
	__u32 i;

	if (!skb || !l)
		return false;
	each_budget(l, i, b) {
		if (!l->stream && prepaid(credit_at(l, i), weight(b, l)))
			continue;
		if (!conforms(b, l->stream, now)) {
			__sync_fetch_and_add(&b->dropped, l->segments);
			return false;
		}
		l->low |= half_empty(b, l->stream, now);
	}
	marked = l->low && bpf_skb_ecn_set_ce(skb) == 1;
	each_budget(l, i, b) {
		credit = l->stream ? NULL : credit_at(l, i);
		if (prepaid(credit, weight(b, l))) {
			*credit -= weight(b, l);
			continue;
		}
		if (marked && half_empty(b, l->stream, now))
			__sync_fetch_and_add(&b->marked, l->segments);
		pay(b, l->stream, now, toll(b, l));
		if (!l->own)
			charge_others(l->budgets[i], l->stream, now, weight(b, l), grant(b, credit, now));
	}
	return true;
}

/* hold_unpaced says whether a packet goes on that nobody paces. */
static __always_inline int hold_unpaced(struct __sk_buff *skb, struct load *l, __u64 now)
{
	struct budget *b;
	__u32 i;

	if (!bare(skb, l))
		return admit(skb, l, now) ? NEXT : DROP;
	if (l->own)
		return NEXT;
	each_budget(l, i, b) {
		charge_others(l->budgets[i], l->stream, now, weight(b, l), 0);
	}
	return NEXT;
}

/*
 * restrained sees a packet of a connection and says whether its ends hold it back to its
 * share, so that it is charged to the connection's own flow. Length is the packet's own,
 * the headers of its first segment included.
 */
static __always_inline bool restrained(struct paced *p, struct load *l, __u32 length, __u64 now, __u64 patience)
{
	bool restrained;

	learn(p, l, length, now);
	restrained = !unpaced(p, l, now, patience);
	p->sent += l->wire;
	return restrained;
}

/* charge_stakes charges a packet to its connection in all budgets, or just notes that it was there. */
static __always_inline void charge_stakes(struct paced *p, struct load *l, __u64 now, bool restrained)
{
	struct budget *b;
	__u32 i;

	each_budget(l, i, b) {
		charge_stake(p, l, i, now, restrained);
	}
	leave(p, l->hook, now);
}

/* take_tab adds what is on a connection's tab to its packet. */
static __always_inline void take_tab(struct tab *t, struct paced *p, struct load *l)
{
	l->wire += t->bytes;
	l->segments += t->segments;
	p->sent += t->bytes;
}

/* far_off says that less than half of what a limit lets through is used. */
static __always_inline bool far_off(struct budget *b) { return b && load_of(b) < b->unit / 2; }

/* has_calm says whether a connection has sent enough to be spared, and its limits are far from reached. Their numbers are told, and few. */
static __always_inline bool has_calm(struct paced *p, struct load *l)
{
	__u32 i;

	if (p->sent < STEADY)
		return false;
	for (i = 0; i <= ABOVE && l->budgets[i]; i++) {
		if (!far_off(at(l, i)))
			return false;
	}
	return true;
}

/* settle_tab charges what is on a connection's tab with its packet. Its first packets go on none. */
static __always_inline void settle_tab(struct bpf_sock *sk, struct paced *p, struct load *l, __u64 now)
{
	struct known *k = l->tab ? bpf_sk_storage_get(&verdicts, sk, 0, 0) : NULL;

	if (!k)
		return;
	take_tab(&k->tab, p, l);
	k->calm = has_calm(p, l);
	open_tab(&k->tab, p->sent < NEWCOMER ? 0 : l->tab, now + MOMENT, p->pace >> MOMENTS, k->calm ? p->sent >> AT_ONCE : p->sent);
}

/*
 * app_limited says that a connection has paused as its application had no more to send. Who sends all the time is not
 * asked: what then comes late is its timer.
 */
static __always_inline bool app_limited(struct bpf_sock *sk, struct paced *p, __u64 now)
{
	struct tcp_sock *tp;

	if (now < p->stakes[0].charged + PAUSE)
		return false;
	tp = bpf_skc_to_tcp_sock(sk);
	return tp && tp->app_limited;
}

/* hold says whether a packet goes on. */
static __always_inline int hold(struct __sk_buff *skb, struct load *l)
{
	struct bpf_sock *sk = l->datagram ? NULL : full_socket(skb);
	struct paced *p;
	bool paced;
	__u64 now;

	l->stream = !l->datagram && carries_tcp(skb, sk);
	if (!l->stream && all_prepaid(l))
		return NEXT;
	if (sk && !is_tcp(sk))
		sk = NULL;
	now = clock(sk);
	p = sk ? connection(&paces, sk) : NULL;
	if (p) {
		paced = restrained(p, l, skb->len, now, UNPACED);
		if (paced)
			settle_tab(sk, p, l, now);
		p->app_limited = app_limited(sk, p, now);
		charge_stakes(p, l, now, paced);
		if (paced)
			return NEXT;
	}
	return hold_unpaced(skb, l, now);
}

/* add puts one more budget into a load. */
static __always_inline void add(struct load *l, __u32 *n, __u32 budget)
{
	if (budget && *n < BOUNDS) /* always: it is for the verifier */
		l->budgets[(*n)++] = budget;
}


#endif
