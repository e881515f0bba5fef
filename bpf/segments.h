/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a packet weighs on the wire: of one that stands for many segments the kernel
 * counts the headers of all of them on the way out, and not on the way in.
 */
#ifndef WEIR_SEGMENTS_H
#define WEIR_SEGMENTS_H

#include "hold.h"

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

/* heads is the length of what each segment has between link layer and payload. */
static __always_inline __u32 heads(struct __sk_buff *skb)
{
	__u8 ip[10];
	__u32 network;

	if (bpf_skb_load_bytes_relative(skb, 0, ip, sizeof(ip), BPF_HDR_START_NET))
		return 0;
	network = ip[0] >> 4 == 4 ? (ip[0] & 15) << 2 : sizeof(struct ipv6_header);
	return network + transport_length(skb, ip[0] >> 4 == 4 ? ip[9] : ip[6], network);
}

/*
 * weigh fills in what a packet weighs. Missing is what it has lost of its link layer,
 * of which each segment has so many bytes.
 */
static __always_inline void weigh(struct __sk_buff *skb, struct load *l, __u32 missing, __u32 link_layer)
{
	__u32 size = skb->gso_size, head;

	l->wire = skb->len + missing;
	l->segments = 1;
	if (!size)
		return;
	head = link_layer + heads(skb);
	l->segments = skb->gso_segs;
	if (!l->segments) /* a virtual machine leaves the counting to us */
		l->segments = most((l->wire - least(head, l->wire) + size - 1) / size, 1);
	l->wire += (l->segments - 1) * head;
}

#endif
