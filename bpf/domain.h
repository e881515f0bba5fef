/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * To which routing domain is a new socket bound? Those are asked that claim its maker, as
 * for its packets: the tag, the cgroups on the way up, then the v1 cgroup, the user, the
 * executable. Of tag and cgroups the nearest counts that has a domain: what is below a
 * workload with one can have a priority of its own and stays in it.
 */
#ifndef WEIR_DOMAIN_H
#define WEIR_DOMAIN_H

#include "identity.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Whether anything but tags can lead to a domain. */
const volatile bool binds;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct domain);
} domains SEC(".maps");

static __always_inline struct domain *domain_of_contract(__u32 id)
{
	return id ? bpf_map_lookup_elem(&domains, &id) : NULL;
}

/* domain_of_cgroups asks the cgroups of the process, and says whether one of them is claimed. */
static __always_inline struct domain *domain_of_cgroups(bool *claimed)
{
	struct domain *d;
	__u32 *found;
	__u64 id;
	int level;

#pragma clang loop unroll(disable)
	for (level = MAX_CGROUP_DEPTH + 1; level >= 0; level--) {
		id = level > MAX_CGROUP_DEPTH ? bpf_get_current_cgroup_id() : bpf_get_current_ancestor_cgroup_id(level);
		found = id ? bpf_map_lookup_elem(&cgroups, &id) : NULL; /* 0: it is not as deep as this */
		if (!found)
			continue;
		*claimed = true;
		d = domain_of_contract(*found);
		if (d)
			return d;
	}
	return NULL;
}

/* domain_of_maker finds the domain of a socket that the current process makes. */
static __always_inline struct domain *domain_of_maker(struct identity *i)
{
	__u32 uid = bpf_get_current_uid_gid(), id = 0, *found;
	bool claimed = false;
	struct domain *d;

	if (i->tag) {
		d = domain_of_contract(TAG_CONTRACT(i->tag));
		if (d && d->serial == TAG_SERIAL(i->tag))
			return d;
	}
	if (!binds)
		return NULL;
	d = domain_of_cgroups(&claimed);
	if (d || claimed)
		return d;
	if (i->cgroup1)
		id = contract_of_cgroup1(i);
	if (!id) {
		found = bpf_map_lookup_elem(&users, &uid);
		id = found ? *found : 0;
	}
	if (!id && i->inode)
		id = contract_of_exe(i);
	return domain_of_contract(id);
}

/* here reports whether a process is where the device of a domain is. */
static __always_inline bool here(struct domain *d, struct task_struct *task)
{
	return BPF_CORE_READ(task, nsproxy, net_ns, ns.inum) == d->netns;
}

#endif
