// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * socket_create: who makes this socket?
 *
 * It runs when a process of the scope's cgroup makes an inet socket, the only
 * moment at which the kernel knows for certain whose socket it is: later packets
 * leave in softirqs, on other CPUs, in anybody's name. The answer stays with the
 * socket and with all that are accepted from it.
 *
 * It is the moment, too, at which a socket can be bound to the routing domain of its
 * workload: one that is bound already, by a program below ours, stays so.
 */
#include "domain.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Whether any rule asks for the executable. */
const volatile bool track_exe;
/* Index of the v1 controller whose hierarchy the policy names; -1: none. */
const volatile int controller1 = -1;

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

/* bind puts a socket into the routing domain of its maker. */
static __always_inline void bind(struct bpf_sock *sk, struct task_struct *task, struct identity *i)
{
	struct domain *d;

	if (sk->bound_dev_if)
		return;
	d = domain_of_maker(i);
	if (d && here(d, task))
		sk->bound_dev_if = d->device;
}

SEC("cgroup/sock_create")
int socket_create(struct bpf_sock *sk)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 *tag = bpf_map_lookup_elem(&tasks, &tgid);
	struct identity found = {}, *i;
	struct task_struct *task;
	struct inode *exe;

	if (!tag && !track_exe && controller1 < 0 && !binds)
		return 1;
	task = (struct task_struct *)bpf_get_current_task();
	if (tag)
		found.tag = *tag;
	if (track_exe) {
		exe = BPF_CORE_READ(task, mm, exe_file, f_inode);
		found.inode = BPF_CORE_READ(exe, i_ino);
		found.device = BPF_CORE_READ(exe, i_sb, s_dev);
	}
	if (controller1 >= 0)
		found.cgroup1 = cgroup1_of(task);
	bind(sk, task, &found);
	if (!tag && !track_exe && controller1 < 0)
		return 1;
	i = bpf_sk_storage_get(&identities, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (i)
		*i = found;
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
