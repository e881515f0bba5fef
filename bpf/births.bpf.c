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
 * Limits: patterns are compared up to 249 characters, of names up to 127; those
 * with a wildcard in the middle, and v1 cgroups that are renamed, wait for the next
 * apply. What finds its table full is counted.
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

/* Per CPU: before 5.12 no kernel takes the atomic addition that clang makes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct losses);
} losses SEC(".maps");

/*
 * A cgroup that is born. It begins with a struct birth_prefix, its path with a
 * struct birth_path, its name with a struct birth_name: the keys are too large for
 * the stack. What is cut off of the path decides nothing: a prefix of 250 bytes
 * that reaches into a name of NAME_MAX is of a path of 505 at most.
 */
struct newborn {
	__u32 bits;
	char path[512];
	char name[256];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct newborn);
} newborns SEC(".maps");

/* lose counts what a full table did not take. */
static __always_inline void lose(__u64 tags, __u64 cgroups)
{
	__u32 zero = 0;
	struct losses *l = bpf_map_lookup_elem(&losses, &zero);

	if (!l)
		return;
	l->tags += tags;
	l->cgroups += cgroups;
}

SEC("raw_tp/sched_process_fork")
int task_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	__u32 *tag;

	if (from == to) /* a thread */
		return 0;
	tag = bpf_map_lookup_elem(&tasks, &from);
	if (!tag) /* a tag that came after its process' exit stayed, and the number is given out anew */
		bpf_map_delete_elem(&tasks, &to);
	else if (bpf_map_update_elem(&tasks, &to, tag, BPF_ANY))
		lose(1, 0);
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

/* claim files a cgroup under a contract. */
static __always_inline void claim(__u64 id, __u32 contract, bool v2)
{
	if (v2 ? bpf_map_update_elem(&cgroups, &id, &contract, BPF_ANY)
	       : bpf_map_update_elem(&cgroups1, &id, &contract, BPF_ANY))
		lose(0, 1);
}

/* inherited is what claims a v1 cgroup's parent: sockets remember one id only. */
static __always_inline __u32 inherited(struct cgroup *cgroup)
{
	__u64 parent = BPF_CORE_READ(cgroup, self.parent, cgroup, kn, id);
	__u32 *found = bpf_map_lookup_elem(&cgroups1, &parent);

	return found ? *found : CONTRACT_UNCLAIMED;
}

/*
 * match holds a cgroup against the patterns: the whole path, then the longest
 * "DIR/name*", then, in the v2 hierarchy, the name. A prefix must reach into the
 * last component: what lies deeper is found through its ancestors.
 */
static __always_inline __u32 match(struct newborn *n, __u32 length, __u32 name_length, bool v2)
{
	struct birth *b;
	__u32 *found;

	found = bpf_map_lookup_elem(&birth_paths, n->path);
	if (found)
		return *found;
	n->bits = (length < BIRTH_PATH_LEN ? length : BIRTH_PATH_LEN) * 8;
	b = bpf_map_lookup_elem(&birth_prefixes, n);
	if (b && b->length + name_length >= length)
		return b->contract;
	found = v2 ? bpf_map_lookup_elem(&birth_names, n->name) : NULL;
	return found ? *found : CONTRACT_UNCLAIMED;
}

SEC("raw_tp/cgroup_mkdir")
int cgroup_birth(struct bpf_raw_tracepoint_args *ctx)
{
	struct cgroup *cgroup = (void *)ctx->args[0];
	int hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id);
	__u32 zero = 0, contract = CONTRACT_UNCLAIMED;
	long length, name_length;
	bool v2 = hierarchy == 0;
	struct newborn *n;

	if (!v2 && hierarchy != hierarchy1)
		return 0;
	/* One at a time is born, under cgroup_mutex: nobody else has this. */
	n = bpf_map_lookup_elem(&newborns, &zero);
	if (!n)
		return 0;
	__builtin_memset(n, 0, sizeof(*n));
	/* Keys of the v1 hierarchy start with a 1, those of v2 with the slash. */
	n->path[0] = '1';
	length = bpf_probe_read_kernel_str(n->path + !v2, sizeof(n->path) - 1, (void *)ctx->args[1]);
	name_length = bpf_probe_read_kernel_str(n->name, sizeof(n->name), BPF_CORE_READ(cgroup, kn, name));
	if (length > 1 && name_length > 1) /* with the NUL */
		contract = match(n, length - 1 + !v2, name_length - 1, v2);
	if (!contract && !v2)
		contract = inherited(cgroup);
	if (contract)
		claim(BPF_CORE_READ(cgroup, kn, id), contract, v2);
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
