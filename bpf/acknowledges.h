/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which packets of TCP only tell the peer to go on. */
#ifndef WEIR_ACKNOWLEDGES_H
#define WEIR_ACKNOWLEDGES_H

#include "headers.h"
#include "kernel.h"

#include <bpf/bpf_helpers.h>

/*
 * acknowledges tells TCP packets that carry no data, but for those that end a connection,
 * which must not overtake its data.
 */
static __always_inline bool acknowledges(struct __sk_buff *skb)
{
	enum { FIN = 1, RST = 4, FLAGS = 13, OFFSET = 12, TCP_HEADER = 14 };
	__u8 ip[10], tcp[TCP_HEADER];
	__u32 head, length;

	if (bpf_skb_load_bytes_relative(skb, 0, ip, sizeof(ip), BPF_HDR_START_NET))
		return false;
	length = ip[0] >> 4 == 4 ? ip[2] << 8 | ip[3] : 40 + (ip[4] << 8 | ip[5]);
	head = ip[0] >> 4 == 4 ? (ip[0] & 0xf) * 4 : 40;
	if ((ip[0] >> 4 == 4 ? ip[9] : ip[6]) != IPPROTO_TCP)
		return false;
	if (bpf_skb_load_bytes_relative(skb, head, tcp, sizeof(tcp), BPF_HDR_START_NET))
		return false;
	return length == head + (tcp[OFFSET] >> 4) * 4 && !(tcp[FLAGS] & (FIN | RST));
}

#endif
