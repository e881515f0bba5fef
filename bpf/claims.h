/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose socket is this, where there is no packet to ask? The answer is that of owner.h,
 * found in the socket itself: its tag, the nearest of its cgroups, its user, its
 * executable; and the workloads that claim cgroups further up.
 */
#ifndef WEIR_CLAIMS_H
#define WEIR_CLAIMS_H

#include "cgroup.h"
#include "identity.h"

#include <bpf/bpf_helpers.h>

/*
 * Whom a socket belongs to, 16 bits each: its own contract lowest, then those above; 0 is
 * nobody. One word, because kernels before 5.12 prove a function by itself only if it takes
 * and returns numbers.
 */
#define CLAIM(claims, i) ((__u32)((claims) >> 16 * (i)) & 0xffff)

/* claim adds who claims a cgroup to those who claim a socket, each once. */
__noinline __u64 claim(__u64 claims, __u64 id)
{
	__u32 *found = bpf_map_lookup_elem(&cgroups, &id);
	__u32 i;

	if (!found)
		return claims;
#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++) {
		if (CLAIM(claims, i) == *found)
			break;
		if (!CLAIM(claims, i))
			return claims | (__u64)*found << 16 * i;
	}
	return claims;
}

/* claim_cgroups goes up from a cgroup. */
__noinline __u64 claim_cgroups(__u64 claims, __u64 at)
{
	struct cgroup *cgroup = (struct cgroup *)at;
	int level, deepest = BPF_CORE_READ(cgroup, level);

	claims = claim(claims, BPF_CORE_READ(cgroup, kn, id));
#pragma clang loop unroll(disable)
	for (level = MAX_CGROUP_DEPTH; level >= 0; level--)
		if (level < deepest)
			claims = claim(claims, ancestor_id(cgroup, level));
	return claims;
}

static __always_inline __u32 claim_of_user(struct sock *sk)
{
	__u32 uid = BPF_CORE_READ(sk, sk_uid.val);
	__u32 *found = bpf_map_lookup_elem(&users, &uid);

	return found ? *found : CONTRACT_UNCLAIMED;
}

/* claims_of says who claims a socket. */
static __always_inline __u64 claims_of(struct tcp_sock *tp)
{
	struct identity *i = bpf_sk_storage_get(&identities, tp, 0, 0);
	struct sock *sk = (struct sock *)tp;
	__u64 claims = i && i->tag ? contract_of_tag(i->tag) : CONTRACT_UNCLAIMED;

	claims = claim_cgroups(claims, (__u64)cgroup_of(sk));
	if (!claims && i && i->cgroup1)
		claims = contract_of_cgroup1(i);
	if (!claims)
		claims = claim_of_user(sk);
	if (!claims && i && i->inode)
		claims = contract_of_exe(i);
	return claims;
}

#endif
