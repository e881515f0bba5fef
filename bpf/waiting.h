/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where no link keeps packets until their times, what TCP acknowledges waits in a queue of
 * Weir's own: an HTB at one end of a pair of devices, with a class for each limit of what
 * sockets receive. An acknowledgement is as heavy there as what it acknowledges. So those of all
 * connections below a limit leave, one after the other, as a line of that rate would have
 * brought what they acknowledge, and their peers send no more.
 *
 * HTB weighs a packet by its length before any program of that device sees it: so it is made
 * as long as it has to weigh before it goes there, and carries at its end a ticket for the way
 * back. At the other end of the pair back cuts it again, and sends it on by the link that it was about to leave by.
 *
 * What it does not promise: anything of connections that send at the same time. What carries
 * data goes at once, and tells the peer as much.
 */
#ifndef WEIR_WAITING_H
#define WEIR_WAITING_H

#include "acknowledges.h"
#include "budgets.h"
#include "ticket.h"
#include "windows.h"

/* Beside what link_egress hands on (limiter.h): the packet is to wait before it leaves. */
#define LINES_UP 0x10000

/* units_of is as how much so many bytes weigh. What tells of nothing new does not overtake what waits. */
static __always_inline __s32 units_of(__s32 bytes)
{
	__s32 units = bytes >> WAITING_UNIT;

	if (units < 1)
		return 1;
	return units < WAITING_UNITS ? units : WAITING_UNITS;
}

/*
 * unheld_in is for how much an acknowledgement stands beside what its connection got, bytes. Where two CPUs take the same,
 * there is less than nothing until as much has come again.
 */
static __always_inline __u32 unheld_in(struct budget *b)
{
	__s64 bytes = b ? *(volatile __s64 *)&b->unheld : 0;

	if (bytes <= 0)
		return 0;
	return bytes < WAITING_UNITS << WAITING_UNIT ? bytes : WAITING_UNITS << WAITING_UNIT;
}

/* line_up has an acknowledgement wait, or lets it go on where it can not. */
static __always_inline int line_up(struct __sk_buff *skb, int go_on)
{
	struct ticket ticket = { skb->ifindex, skb->priority, skb->len, 0, ticket_time() };
	struct bpf_sock *sk = skb->sk;
	struct paced *p = sk ? bpf_sk_storage_get(&windows, sk, 0, 0) : NULL;
	__u32 length, unheld;
	struct budget *b;
	__s32 units;

	if (!p)
		return go_on;
	ticket.budget = p->line;
	b = budget_of(p->line);
	unheld = unheld_in(b);
	units = units_of(p->unanswered + unheld);
	length = WAITING_LENGTH + units;
	if (bpf_skb_change_tail(skb, length, 0))
		return go_on;
	if (bpf_skb_store_bytes(skb, length - sizeof(ticket), &ticket, sizeof(ticket), 0)) {
		bpf_skb_change_tail(skb, ticket.length, 0);
		return go_on;
	}
	if (b)
		__sync_fetch_and_add(&b->unheld, -(__s64)unheld);
	__sync_fetch_and_add(&p->unanswered, (__s32)unheld - (units << WAITING_UNIT));
	skb->priority = p->class;
	return bpf_redirect(p->device, 0);
}

#endif
