// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * back: sends on what has waited, as it was, by the link that it was about to leave by.
 *
 * It runs at the far end of the pair of devices at whose near end acknowledgements wait. All
 * that comes there comes by line_up, with a ticket at its end; anything else has no way to go. It tells the limit how
 * long the line is: window takes that off what TCP finds a round trip to be.
 */
#include "budgets.h"
#include "headers.h"
#include "ticket.h"

/* Verdict of tc. */
#define DROP 2

SEC("tc")
int back(struct __sk_buff *skb)
{
	struct ticket ticket;
	__u32 length = skb->len;
	struct budget *b;

	if (length <= WAITING_LENGTH || bpf_skb_load_bytes(skb, length - sizeof(ticket), &ticket, sizeof(ticket)))
		return DROP;
	if (!ticket.link || ticket.length < ETH_HLEN || ticket.length > OWN_LENGTH || bpf_skb_change_tail(skb, ticket.length, 0))
		return DROP;
	b = budget_of(ticket.budget);
	if (b)
		b->wait = (__u64)(ticket_time() - ticket.since) << 10;
	skb->priority = ticket.priority;
	return bpf_redirect(ticket.link, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
