/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose socket is this? An explicit tag first, then the nearest ancestor cgroup,
 * then the user, then the executable: everything that holds for all packets of a
 * socket.
 */
#ifndef WEIR_OWNER_H
#define WEIR_OWNER_H

#include "identity.h"

#include <bpf/bpf_helpers.h>

/*
 * contract_of_cgroup finds the nearest cgroup that is claimed. It is global, as claims_above is:
 * so the kernel proves their loops once, and not for each path that leads to them.
 */
__noinline __u32 contract_of_cgroup(struct __sk_buff *skb)
{
	__u64 id = bpf_skb_cgroup_id(skb);
	__u32 *found = bpf_map_lookup_elem(&cgroups, &id);
	int level;

#pragma clang loop unroll(disable)
	for (level = MAX_CGROUP_DEPTH; !found && level >= 0; level--) {
		id = bpf_skb_ancestor_cgroup_id(skb, level);
		if (id) /* 0: it is not as deep as this */
			found = bpf_map_lookup_elem(&cgroups, &id);
	}
	return found ? *found : CONTRACT_UNCLAIMED;
}

/*
 * claims_above collects the workloads that claim the cgroups on the way up from a
 * socket's, but for its own one: 16 bits each, the nearest lowest. Each counts once.
 */
__noinline __u64 claims_above(struct __sk_buff *skb, __u32 own)
{
	__u64 id = bpf_skb_cgroup_id(skb), all = 0;
	__u32 *found, n = 0;
	int level;

#pragma clang loop unroll(disable)
	for (level = MAX_CGROUP_DEPTH; level >= -1; level--) {
		found = id ? bpf_map_lookup_elem(&cgroups, &id) : NULL;
		id = bpf_skb_ancestor_cgroup_id(skb, level);
		if (!found || *found == own || *found == (__u16)all || *found == (__u16)(all >> 16))
			continue;
		all |= (__u64)*found << 16 * n;
		if (++n == ABOVE)
			break;
	}
	return all;
}

/* find_above says whether anything binds a socket beside its own contract, and what. */
static __always_inline bool find_above(struct __sk_buff *skb, __u16 own, struct above *above)
{
	__u64 all = claims_above(skb, own);
	__u32 i;

#pragma clang loop unroll(full)
	for (i = 0; i < ABOVE; i++)
		above->contracts[i] = all >> 16 * i;
	return all;
}

static __always_inline __u32 contract_of_user(struct __sk_buff *skb)
{
	__u32 uid = bpf_get_socket_uid(skb);
	__u32 *found = bpf_map_lookup_elem(&users, &uid);

	return found ? *found : CONTRACT_UNCLAIMED;
}

/*
 * identity_of returns who made a socket. The kernel makes the subflows of MPTCP
 * by itself, so they say nothing of their maker; what the application made is
 * the connection. Its identity is copied to the subflow, because of a listening
 * subflow's children those that speak plain TCP are cut loose from MPTCP. Where SYN
 * cookies answer from the first SYN on, nothing comes by here that could copy it.
 */
static __always_inline struct identity *identity_of(struct bpf_sock *sk, struct mptcp_sock *msk)
{
	struct identity *i, *own;

	if (!msk)
		return bpf_sk_storage_get(&identities, sk, 0, 0);
	i = bpf_sk_storage_get(&identities, msk, 0, 0);
	if (!i)
		return NULL;
	own = bpf_sk_storage_get(&identities, sk, i, BPF_SK_STORAGE_GET_F_CREATE);
	if (own)
		*own = *i;
	return i;
}

/* contract_of_socket asks everything that holds for all packets of a socket. */
static __noinline __u32 contract_of_socket(struct __sk_buff *skb, struct bpf_sock *sk, struct mptcp_sock *msk)
{
	struct identity *i = identity_of(sk, msk);
	__u32 id = CONTRACT_UNCLAIMED;

	if (i && i->tag)
		id = contract_of_tag(i->tag);
	if (!id)
		id = contract_of_cgroup(skb);
	if (!id && i && i->cgroup1)
		id = contract_of_cgroup1(i);
	if (!id)
		id = contract_of_user(skb);
	if (!id && i && i->inode)
		id = contract_of_exe(i);
	return id;
}

#endif
