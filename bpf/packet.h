/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a packet says of itself: addresses, ports, protocol, DSCP. Anything that
 * can not be read with certainty is said to be unreadable, never guessed.
 */
#ifndef WEIR_PACKET_H
#define WEIR_PACKET_H

#include "contract.h"
#include "headers.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* More tags or extension headers than these and a packet is unreadable. */
#define MAX_VLAN_TAGS 2
#define MAX_EXTENSIONS 8

/* The two ends of a packet: rules match either, the destination first. */
enum end { DESTINATION, SOURCE, ENDS };

enum ports {
	NO_PORTS,   /* its protocol has none */
	PORTS_READ, /* port[] holds them */
	PORTS_LOST, /* they went with the first fragment */
};

struct packet {
	__u32 address[ENDS][4]; /* network byte order, IPv4 mapped into IPv6 */
	__u16 port[ENDS];	/* network byte order */
	__u8 family;		/* 4 or 6 */
	__u8 protocol;
	__u8 dscp;
	__u8 ports;    /* enum ports */
	bool fragment; /* a later one */
};

enum parsed { PARSED, NOT_IP, UNREADABLE };

/*
 * load reads a header that has to end where the packet does or before: what
 * follows in a short Ethernet frame is padding.
 */
static __always_inline bool load(struct __sk_buff *skb, __u32 offset, void *to, __u32 size, __u32 end)
{
	return offset + size <= end && !bpf_skb_load_bytes(skb, offset, to, size);
}

static __always_inline enum parsed parse_ports(struct __sk_buff *skb, __u32 offset, __u32 end, struct packet *p)
{
	__u16 ports[2];

	switch (p->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
		break;
	default:
		return PARSED;
	}
	if (p->fragment) {
		p->ports = PORTS_LOST;
		return PARSED;
	}
	if (!load(skb, offset, ports, sizeof(ports), end))
		return UNREADABLE;
	p->port[SOURCE] = ports[0];
	p->port[DESTINATION] = ports[1];
	p->ports = PORTS_READ;
	return PARSED;
}

/* A length of 0 is that of a packet beyond 64 KiB: BIG TCP, jumbograms. */
static __always_inline __u32 end_of(__u32 offset, __u16 length)
{
	return length ? offset + bpf_ntohs(length) : -1;
}

static __always_inline enum parsed parse_ipv4(struct __sk_buff *skb, __u32 offset, struct packet *p)
{
	struct ipv4_header ip;
	__u32 length;

	if (!load(skb, offset, &ip, sizeof(ip), -1))
		return UNREADABLE;
	length = (ip.version_ihl & 0xf) * 4;
	if (ip.version_ihl >> 4 != 4 || length < sizeof(ip))
		return UNREADABLE;
	p->family = 4;
	p->address[SOURCE][2] = p->address[DESTINATION][2] = bpf_htonl(0xffff);
	p->address[SOURCE][3] = ip.source;
	p->address[DESTINATION][3] = ip.destination;
	p->protocol = ip.protocol;
	p->dscp = ip.tos >> 2;
	p->fragment = ip.fragment & bpf_htons(IPV4_FRAGMENT_OFFSET);
	return parse_ports(skb, offset + length, end_of(offset, ip.length), p);
}

/*
 * is_extension tells the headers that stand before a packet's own protocol. As
 * for netfilter, AH is one in IPv6, and in IPv4 a protocol that has no ports.
 */
static __always_inline bool is_extension(__u8 header)
{
	switch (header) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_FRAGMENT:
	case IPPROTO_AH:
	case IPPROTO_DSTOPTS:
	case IPPROTO_MH:
	case IPPROTO_HIP:
	case IPPROTO_SHIM6:
		return true;
	}
	return false;
}

static __always_inline enum parsed parse_ipv6(struct __sk_buff *skb, __u32 offset, struct packet *p)
{
	struct ipv6_extension ext;
	struct ipv6_header ip;
	__u32 end;
	int i;

	if (!load(skb, offset, &ip, sizeof(ip), -1) || bpf_ntohl(ip.flow) >> 28 != 6)
		return UNREADABLE;
	p->family = 6;
	__builtin_memcpy(p->address[SOURCE], ip.source, sizeof(ip.source));
	__builtin_memcpy(p->address[DESTINATION], ip.destination, sizeof(ip.destination));
	p->dscp = bpf_ntohl(ip.flow) >> 22 & 0x3f;
	p->protocol = ip.next;
	offset += sizeof(ip);
	end = end_of(offset, ip.length);
	for (i = 0; i <= MAX_EXTENSIONS; i++) {
		if (!is_extension(p->protocol))
			return parse_ports(skb, offset, end, p);
		/* A later fragment carries none of the headers behind this one. */
		if (p->fragment || !load(skb, offset, &ext, sizeof(ext), end))
			break;
		switch (p->protocol) {
		case IPPROTO_FRAGMENT:
			p->fragment = ext.fragment & bpf_htons(IPV6_FRAGMENT_OFFSET);
			offset += 8;
			break;
		case IPPROTO_AH:
			offset += (ext.length + 2) * 4;
			break;
		default:
			offset += (ext.length + 1) * 8;
		}
		p->protocol = ext.next;
	}
	return UNREADABLE;
}

/*
 * find_network finds where the network header of a packet is that starts with a
 * link-layer header of l2 bytes, and its protocol.
 */
static __always_inline bool find_network(struct __sk_buff *skb, __u32 l2, __u32 *offset, __u16 *protocol)
{
	__u16 tag[2];
	int i;

	*protocol = skb->protocol;
	*offset = l2;
	/* The frame's own word: skb->protocol of a tagged frame differs between kernels. */
	if (l2 && !load(skb, l2 - sizeof(*protocol), protocol, sizeof(*protocol), -1))
		return false;
	for (i = 0; l2 && i < MAX_VLAN_TAGS; i++) {
		if (*protocol != bpf_htons(ETH_P_8021Q) && *protocol != bpf_htons(ETH_P_8021AD))
			break;
		if (!load(skb, *offset, tag, sizeof(tag), -1))
			return false;
		*protocol = tag[1];
		*offset += sizeof(tag);
	}
	return true;
}

/*
 * parse reads the headers of a packet that starts with a link-layer header of
 * l2 bytes: 14 on Ethernet devices, 0 on those that carry bare IP.
 */
static __always_inline enum parsed parse(struct __sk_buff *skb, __u32 l2, struct packet *p)
{
	__u16 protocol;
	__u32 offset;

	__builtin_memset(p, 0, sizeof(*p));
	if (!find_network(skb, l2, &offset, &protocol))
		return UNREADABLE;
	switch (protocol) {
	case bpf_htons(ETH_P_IP):
		return parse_ipv4(skb, offset, p);
	case bpf_htons(ETH_P_IPV6):
		return parse_ipv6(skb, offset, p);
	case bpf_htons(ETH_P_8021Q):
	case bpf_htons(ETH_P_8021AD):
		return UNREADABLE;
	}
	return NOT_IP;
}

#endif
