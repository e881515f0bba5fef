/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Headers as they stand in packets. The uapi headers spell them with bit-fields
 * and drag in much that a BPF program can not have.
 */
#ifndef WEIR_HEADERS_H
#define WEIR_HEADERS_H

#include <linux/types.h>

#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define ETH_P_ARP 0x0806
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8

#define IPPROTO_HOPOPTS 0
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_DCCP 33
#define IPPROTO_ROUTING 43
#define IPPROTO_FRAGMENT 44
#define IPPROTO_AH 51
#define IPPROTO_DSTOPTS 60
#define IPPROTO_SCTP 132
#define IPPROTO_MH 135
#define IPPROTO_UDPLITE 136
#define IPPROTO_HIP 139
#define IPPROTO_SHIM6 140

#define SOCK_STREAM 1

#define IPV4_FRAGMENT_OFFSET 0x1fff
#define IPV6_FRAGMENT_OFFSET 0xfff8

struct ipv4_header {
	__u8 version_ihl, tos;
	__u16 length, id, fragment;
	__u8 ttl, protocol;
	__u16 checksum;
	__u32 source, destination;
};

struct ipv6_header {
	__u32 flow; /* version, traffic class, flow label; network byte order */
	__u16 length;
	__u8 next, hops;
	__u32 source[4], destination[4];
};

struct ipv6_extension {
	__u8 next, length;
	__u16 fragment; /* of a fragment header */
};

_Static_assert(sizeof(struct ipv4_header) == 20, "ipv4_header");
_Static_assert(sizeof(struct ipv6_header) == 40, "ipv6_header");

#endif
