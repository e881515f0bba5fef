// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * open: what user space runs once over the TCP sockets of a network namespace.
 *
 * enlist asks for word of connections that are open, as pace and window do of those
 * that are established later. Where the kernel does not let a program ask, such
 * connections are held by drops.
 *
 * unpace and unwindow give them back the pace and the window that they had before they
 * came below a limit.
 */
#include "opened.h"
#include "paces.h"
#include "pieces.h"
#include "windows.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* What enlist asks for word of: BPF_SOCK_OPS_*_CB_FLAG. */
const volatile __u32 word = BPF_SOCK_OPS_RTT_CB_FLAG;

/* Of how many sockets the kernel refused it. */
__u64 refused;

SEC("iter/tcp")
int enlist(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);

	if (tp && !hear(tp, word))
		refused++;
	return 0;
}

/* leave_all takes a connection out of all limits: its pace, or window, is not set anew. */
static __always_inline void leave_all(struct paced *p)
{
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < STAKES; i++)
		p->stakes[i].budget = 0;
}

SEC("iter/tcp")
int unpace(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct paced *p = tp ? bpf_sk_storage_get(&paces, tp, 0, 0) : NULL;
	__u32 own;

	if (!p || !p->pace)
		return 0;
	leave_all(p);
	own = p->own;
	/* What is not ours, the application has set meanwhile. */
	if (((struct sock *)tp)->sk_max_pacing_rate == p->pace &&
	    bpf_setsockopt(tp, SOL_SOCKET, SO_MAX_PACING_RATE, &own, sizeof(own)))
		refused++;
	else if (!unbind_pieces(tp, p))
		refused++;
	else
		p->pace = 0;
	return 0;
}

SEC("iter/tcp")
int unwindow(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct paced *p = tp ? bpf_sk_storage_get(&windows, tp, 0, 0) : NULL;
	__u32 own;

	if (!p || !p->pace)
		return 0;
	leave_all(p);
	own = p->own;
	/* What is not ours, TCP has widened meanwhile. */
	if (tp->window_clamp == p->pace && bpf_setsockopt(tp, SOL_TCP, TCP_WINDOW_CLAMP, &own, sizeof(own)))
		refused++;
	else
		p->pace = 0;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
