// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * link_ingress: holds what enters a link to the link's own limit.
 *
 * What a container of this host sends enters by the host's end of its veth, and its
 * packets still know their sockets there: so its TCP is paced at its source. All
 * else has to go through the bucket.
 *
 * What it does not promise: that the sender of what comes from another host waits;
 * it learns of the limit by marks and losses.
 */
#include "hold.h"

/* Bytes before the network header, as packets of this link have them. */
const volatile __u32 l2_length = ETH_HLEN;
/* The budget of this link's ingress. */
const volatile __u32 budget = 1;

/* transport_length is the length of a TCP or UDP header. */
static __always_inline __u32 transport_length(struct __sk_buff *skb, __u32 protocol, __u32 offset)
{
	__u8 words;

	if (protocol != IPPROTO_TCP)
		return 8;
	if (bpf_skb_load_bytes_relative(skb, offset + 12, &words, sizeof(words), BPF_HDR_START_NET))
		return 20;
	return words >> 4 << 2;
}

/* heads is the length of what each segment of a packet has before its payload. */
static __always_inline __u32 heads(struct __sk_buff *skb)
{
	__u8 ip[10];
	__u32 network;

	if (bpf_skb_load_bytes_relative(skb, 0, ip, sizeof(ip), BPF_HDR_START_NET))
		return l2_length;
	network = ip[0] >> 4 == 4 ? (ip[0] & 15) << 2 : sizeof(struct ipv6_header);
	return l2_length + network + transport_length(skb, ip[0] >> 4 == 4 ? ip[9] : ip[6], network);
}

/* weigh is what the kernel does for us on the way out only: packets as on the wire. */
static __always_inline struct load weigh(struct __sk_buff *skb)
{
	struct load l = { .wire = skb->len, .segments = 1, .hook = skb->ifindex * 2 + 1, .budgets = { budget } };
	__u32 size = skb->gso_size, head;

	if (!size)
		return l;
	head = heads(skb);
	l.segments = skb->gso_segs;
	if (!l.segments) /* a virtual machine leaves the counting to us */
		l.segments = most((l.wire - least(head, l.wire) + size - 1) / size, 1);
	l.wire += (l.segments - 1) * head;
	return l;
}

SEC("tc")
int link_ingress(struct __sk_buff *skb)
{
	struct load load = weigh(skb), *l = &load;

	opaque(l);
	return hold(skb, l);
}

char _license[] SEC("license") = "Dual BSD/GPL";
