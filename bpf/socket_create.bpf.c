// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * socket_create: who makes this socket?
 *
 * It runs when a process of the scope's cgroup makes an inet socket, the only
 * moment at which the kernel knows for certain whose socket it is: later packets
 * leave in softirqs, on other CPUs, in anybody's name. The answer stays with the
 * socket and with all that are accepted from it.
 */
#include "contract.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Whether any rule asks for the executable. */
const volatile bool track_exe;
/* Index of the v1 controller whose hierarchy the policy names; -1: none. */
const volatile int controller1 = -1;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct identity);
} identities SEC(".maps");

/* Explicit tags of processes, by thread group id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, __u32);
} tasks SEC(".maps");

static __always_inline __u64 cgroup1_of(struct task_struct *task)
{
	struct cgroup_subsys_state *css;
	struct css_set *set = BPF_CORE_READ(task, cgroups);

	if (bpf_core_read(&css, sizeof(css), &set->subsys[0] + controller1) || !css)
		return 0;
	return BPF_CORE_READ(css, cgroup, kn, id);
}

SEC("cgroup/sock_create")
int socket_create(struct bpf_sock *sk)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 *tag = bpf_map_lookup_elem(&tasks, &tgid);
	struct task_struct *task;
	struct identity *i;
	struct inode *exe;

	if (!tag && !track_exe && controller1 < 0)
		return 1;
	i = bpf_sk_storage_get(&identities, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!i)
		return 1;
	if (tag)
		i->tag = *tag;
	task = (struct task_struct *)bpf_get_current_task();
	if (track_exe) {
		exe = BPF_CORE_READ(task, mm, exe_file, f_inode);
		i->inode = BPF_CORE_READ(exe, i_ino);
		i->device = BPF_CORE_READ(exe, i_sb, s_dev);
	}
	if (controller1 >= 0)
		i->cgroup1 = cgroup1_of(task);
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
