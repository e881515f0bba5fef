// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * births: tags and cgroup rules that follow what is born after them.
 *
 * A forked process inherits its parent's tag; a process that is gone loses it,
 * so that its number can be given out again. A cgroup that is made later, or
 * made anew when a service restarts, is claimed before its first process can
 * open a socket: its path is held against the policy's patterns right here, and
 * no daemon has to be faster.
 *
 * Limits: paths up to 249 and names up to 127 bytes; patterns with a wildcard in
 * the middle are matched by the next apply only. Cgroups are born one at a time
 * (under cgroup_mutex), so two births never share the scratch.
 */
#include "contract.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Hierarchy of the policy's v1 controller, as in /proc/PID/cgroup; 0: none. */
const volatile int hierarchy1;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, __u32);
} tasks SEC(".maps");

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
	__type(key, struct birth_path);
	__type(value, __u32);
} birth_paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct birth_name);
	__type(value, __u32);
} birth_names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct birth_prefix);
	__type(value, struct birth);
} birth_prefixes SEC(".maps");

/* Keys of 256 bytes do not fit on the stack beside anything else. */
struct scratch {
	struct birth_prefix path;
	char name[256]; /* NAME_MAX and NUL; begins with a struct birth_name */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

SEC("raw_tp/sched_process_fork")
int task_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	__u32 *tag;

	if (from == to) /* a thread */
		return 0;
	tag = bpf_map_lookup_elem(&tasks, &from);
	if (tag)
		bpf_map_update_elem(&tasks, &to, tag, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int task_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 tgid = BPF_CORE_READ(task, tgid);

	/* The tracepoint fires for each thread; the last one takes the tag along. */
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		bpf_map_delete_elem(&tasks, &tgid);
	return 0;
}

/* claim_child hands a v1 cgroup's contract on: sockets remember one id only. */
static __always_inline void claim_child(struct cgroup *cgroup, __u64 id)
{
	__u64 parent = BPF_CORE_READ(cgroup, self.parent, cgroup, kn, id);
	__u32 *found = bpf_map_lookup_elem(&cgroups1, &parent);

	if (found)
		bpf_map_update_elem(&cgroups1, &id, found, BPF_ANY);
}

/*
 * match holds a path of length characters against the patterns: the whole path,
 * then the longest "DIR/name*", then, in the v2 hierarchy, the name. A prefix must
 * reach into the last component: what lies deeper is found through its ancestors.
 */
static __always_inline __u32 match(struct scratch *s, __u32 length, __u32 name_length, bool v2)
{
	struct birth *b;
	__u32 *found;

	found = bpf_map_lookup_elem(&birth_paths, &s->path.path);
	if (found)
		return *found;
	s->path.bits = length * 8;
	b = bpf_map_lookup_elem(&birth_prefixes, &s->path);
	if (b && b->length + name_length >= length)
		return b->contract;
	found = v2 ? bpf_map_lookup_elem(&birth_names, &s->name) : NULL;
	return found ? *found : CONTRACT_UNCLAIMED;
}

SEC("raw_tp/cgroup_mkdir")
int cgroup_birth(struct bpf_raw_tracepoint_args *ctx)
{
	struct cgroup *cgroup = (void *)ctx->args[0];
	__u64 id = BPF_CORE_READ(cgroup, kn, id);
	int hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id);
	__u32 zero = 0, contract;
	long length, name_length;
	bool v2 = hierarchy == 0;
	struct scratch *s;

	if (!v2 && hierarchy != hierarchy1)
		return 0;
	if (!v2)
		claim_child(cgroup, id);
	s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s)
		return 0;
	__builtin_memset(s, 0, sizeof(*s));
	/* Keys of the v1 hierarchy start with a 1, those of v2 with the slash. */
	s->path.path[0] = '1';
	length = bpf_probe_read_kernel_str(s->path.path + !v2, BIRTH_PATH_LEN - 1, (void *)ctx->args[1]);
	name_length = bpf_probe_read_kernel_str(s->name, sizeof(s->name), BPF_CORE_READ(cgroup, kn, name));
	if (length < 2 || length == BIRTH_PATH_LEN - 1 || name_length < 2)
		return 0;
	contract = match(s, length - 1 + !v2, name_length - 1, v2);
	if (contract && v2)
		bpf_map_update_elem(&cgroups, &id, &contract, BPF_ANY);
	else if (contract)
		bpf_map_update_elem(&cgroups1, &id, &contract, BPF_ANY);
	return 0;
}

SEC("raw_tp/cgroup_rmdir")
int cgroup_death(struct bpf_raw_tracepoint_args *ctx)
{
	struct cgroup *cgroup = (void *)ctx->args[0];
	__u64 id = BPF_CORE_READ(cgroup, kn, id);
	int hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id);

	if (!hierarchy)
		bpf_map_delete_elem(&cgroups, &id);
	else if (hierarchy == hierarchy1)
		bpf_map_delete_elem(&cgroups1, &id);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
