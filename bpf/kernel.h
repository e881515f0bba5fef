/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The little of the kernel's own types that Weir reads. CO-RE relocates every
 * access to the running kernel's layout, so only names and nesting count here;
 * a dumped vmlinux.h would be 100,000 lines of one particular kernel.
 */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define relocated __attribute__((preserve_access_index))

struct super_block {
	__u32 s_dev;
} relocated;

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
} relocated;

struct file {
	struct inode *f_inode;
} relocated;

struct mm_struct {
	struct file *exe_file;
} relocated;

struct kernfs_node {
	const char *name;
	__u64 id;
} relocated;

struct cgroup_root {
	int hierarchy_id;
} relocated;

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} relocated;

struct cgroup {
	struct cgroup_subsys_state self;
	int level; /* 0 is the root's */
	struct kernfs_node *kn;
	struct cgroup_root *root;
} relocated;

struct css_set {
	struct cgroup_subsys_state *subsys[1];
} relocated;

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
} relocated;

/* Before 6.1 a cgroup knew its ancestors by id only. */
struct cgroup___ids {
	__u64 ancestor_ids[1];
} relocated;

struct cgroup___ancestors {
	struct cgroup *ancestors[1];
} relocated;

/* Before 5.15 a pointer, or else a class and a priority of v1. */
struct sock_cgroup_data {
	struct cgroup *cgroup;
} relocated;

struct sock_cgroup_data___val {
	__u64 val;
} relocated;

struct netns_ipv4 {
	int sysctl_tcp_wmem[3];
	int sysctl_tcp_rmem[3];
	__u8 sysctl_tcp_tso_rtt_log; /* from 5.18 on */
} relocated;

struct ns_common {
	unsigned int inum;
} relocated;

struct net {
	struct netns_ipv4 ipv4;
	struct ns_common ns;
} relocated;

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	possible_net_t skc_net;
	unsigned char skc_state;
} relocated;

typedef struct {
	__u32 val;
} kuid_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} relocated;

struct sock;

struct sk_buff {
	unsigned int len;
	struct sock *sk;
	int skb_iif;          /* the device that it came by; 0: made here */
	unsigned char *head;
	__u32 end;            /* from head: where struct skb_shared_info begins */
} relocated;

struct skb_shared_info {
	unsigned short gso_segs;
} relocated;

struct sk_buff_head {
	struct sk_buff *prev; /* the last one */
	__u32 qlen;
} relocated;

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_write_queue; /* what TCP has not sent yet */
	unsigned long sk_max_pacing_rate; /* bytes a second; ~0: none */
	int sk_wmem_queued;
	int sk_sndbuf;
	int sk_rcvbuf;
	struct {
		atomic_t rmem_alloc; /* what the receive queue holds */
	} sk_backlog;
	unsigned int sk_gso_max_size;
	kuid_t sk_uid;
	struct sock_cgroup_data sk_cgrp_data;
	__u8 sk_userlocks : 4;
} relocated;

struct tcp_sock {
	struct {
		__u8 snd_wscale : 4, rcv_wscale : 4; /* of windows, in powers of two */
	} rx_opt;
	__u64 bytes_received;  /* of payload */
	__u64 tcp_clock_cache; /* when it last looked at the clock, ns */
	__u32 app_limited;     /* not 0 while what was sent since its application had no more is on its way */
	__u32 max_window;      /* the most that its peer has offered it so far, bytes */
	__u32 mss_cache;
	__u32 srtt_us;	       /* the round trip, times 8; 0: not yet */
	__u32 window_clamp;    /* the most that it offers its peer, bytes */
	__u32 snd_cwnd;	       /* its congestion window, segments */
	__u32 snd_cwnd_clamp;  /* the most that this may be */
	struct {
		struct {
			__u32 v;
		} s[1]; /* the shortest of the last minutes first, us */
	} rtt_min;
	__u16 advmss;	       /* the largest segment that it asks its peer for, bytes of payload */
	__u8 bpf_sock_ops_cb_flags;
	struct {
		__u32 rtt_us; /* times 8; 0: not yet */
	} rcv_rtt_est; /* the round trip, by what the peer sends */
} relocated;

struct nsproxy {
	struct net *net_ns;
} relocated;

struct task_struct {
	int tgid;
	struct nsproxy *nsproxy;
	struct mm_struct *mm;
	struct css_set *cgroups;
	struct signal_struct *signal;
} relocated;

#endif
