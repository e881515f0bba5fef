// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * classify: under which contract would a packet go that has no socket?
 *
 * It is never attached. weir explain --flow and the tests run it on packets that
 * they make up, against the very tables that link_egress uses, so that the
 * answer is the kernel's and not a second opinion.
 */
#include "flows.h"

SEC("tc")
int classify(struct __sk_buff *skb)
{
	return contract_of_headers(skb);
}

char _license[] SEC("license") = "Dual BSD/GPL";
