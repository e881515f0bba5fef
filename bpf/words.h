/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What TCP tells sockops programs of a connection, BPF_SOCK_OPS_*_CB_FLAG. All programs on
 * a cgroup share that: who has enough of it takes back only what was not told before.
 */
#ifndef WEIR_WORDS_H
#define WEIR_WORDS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* hear_of asks for word, beside what is told already. */
static __always_inline void hear_of(struct bpf_sock_ops *ops, int word)
{
	int told = ops->bpf_sock_ops_cb_flags;

	if ((told & word) != word)
		bpf_sock_ops_cb_flags_set(ops, told | word);
}

#endif
