/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is known of who made a socket, and the tables that say whose that makes it.
 */
#ifndef WEIR_IDENTITY_H
#define WEIR_IDENTITY_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

/* The deepest ancestor that is asked; a socket's own cgroup may be deeper. */
#define MAX_CGROUP_DEPTH 32

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct identity);
} identities SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} cgroups1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} users SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct exe);
	__type(value, __u32);
} exes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct contract);
} contracts SEC(".maps");

/* A tag counts for as long as its contract lives. */
static __always_inline __u32 contract_of_tag(__u32 tag)
{
	__u32 id = TAG_CONTRACT(tag);
	struct contract *c = bpf_map_lookup_elem(&contracts, &id);

	return c && c->serial == TAG_SERIAL(tag) ? id : CONTRACT_UNCLAIMED;
}

static __always_inline __u32 contract_of_cgroup1(struct identity *i)
{
	__u32 *found = bpf_map_lookup_elem(&cgroups1, &i->cgroup1);

	return found ? *found : CONTRACT_UNCLAIMED;
}

static __always_inline __u32 contract_of_exe(struct identity *i)
{
	struct exe key = { .inode = i->inode, .device = i->device };
	__u32 *found = bpf_map_lookup_elem(&exes, &key);

	return found ? *found : CONTRACT_UNCLAIMED;
}

#endif
