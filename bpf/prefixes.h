/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What goes to some prefixes has limits of its own beside its contract's. Of the prefixes
 * of one contract that fit a packet's destination the longest counts.
 */
#ifndef WEIR_PREFIXES_H
#define WEIR_PREFIXES_H

#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct prefix);
	__type(value, struct toward);
} prefixes SEC(".maps");

/* destination_of fills in where a packet goes; false where that is no address. */
static __always_inline bool destination_of(struct __sk_buff *skb, __u32 l2, struct prefix *p)
{
	__u16 protocol;
	__u32 offset;

	if (!find_network(skb, l2, &offset, &protocol))
		return false;
	switch (protocol) {
	case bpf_htons(ETH_P_IP):
		p->family = 4;
		p->address[2] = bpf_htonl(0xffff);
		return load(skb, offset + offsetof(struct ipv4_header, destination), &p->address[3], 4, -1);
	case bpf_htons(ETH_P_IPV6):
		p->family = 6;
		return load(skb, offset + offsetof(struct ipv6_header, destination), p->address, sizeof(p->address), -1);
	}
	return false;
}

/*
 * budgets_toward are the numbers of the budgets of a contract for where a packet goes, the
 * one of packets above the other. It is global: so the kernel proves it once.
 */
__noinline int budgets_toward(struct __sk_buff *skb, __u32 contract, __u32 l2)
{
	struct prefix p = { .bits = 8 * (sizeof(p) - sizeof(p.bits)), .contract = contract };
	struct toward *t;

	if (!skb || !destination_of(skb, l2, &p))
		return 0;
	t = bpf_map_lookup_elem(&prefixes, &p);
	return t ? t->bytes | (__u32)t->packets << 16 : 0;
}

#endif
