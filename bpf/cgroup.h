/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The cgroup of a socket, and those above it, as each kernel keeps them.
 */
#ifndef WEIR_CGROUP_H
#define WEIR_CGROUP_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* cgroup_of is the cgroup v2 of a socket, or NULL where v1 has taken its place. */
static __always_inline struct cgroup *cgroup_of(struct sock *sk)
{
	struct sock_cgroup_data___val *old = (void *)&sk->sk_cgrp_data;
	__u64 val;

	if (bpf_core_field_exists(sk->sk_cgrp_data.cgroup))
		return BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	val = BPF_CORE_READ(old, val);
	return val & 1 ? NULL : (struct cgroup *)val; /* odd: it is of v1 */
}

/* ancestor_id is the id of the cgroup above a cgroup, or of itself, at a level. */
static __always_inline __u64 ancestor_id(struct cgroup *cgroup, int level)
{
	struct cgroup___ancestors *new = (void *)cgroup;
	struct cgroup___ids *old = (void *)cgroup;
	struct cgroup *up = NULL;
	__u64 id = 0;

	if (bpf_core_field_exists(new->ancestors)) {
		bpf_core_read(&up, sizeof(up), &new->ancestors[0] + level);
		return BPF_CORE_READ(up, kn, id);
	}
	bpf_core_read(&id, sizeof(id), &old->ancestor_ids[0] + level);
	return id;
}

#endif
