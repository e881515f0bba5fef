// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * adopt: what user space runs over the TCP sockets of a network namespace when bounds of
 * their memory come, change and go.
 *
 * adopt puts connections that are open into their pools, as tcp_memory does with those
 * that are established later, and asks for word of them. Kernels before 6.12 do not give
 * it. What nobody is told of can not be in the sums of a pool, since nobody would take it
 * out at its end: it is counted, and squeeze fits it, once, to its even part of soft.
 *
 * disown forgets what sockets had of pools that are gone.
 */
#include "entry.h"
#include "opened.h"

/* The kernfs id of the scope's cgroup: tcp_memory runs there and below, and nowhere else. */
const volatile __u64 scope;

#define TCP_SYN_SENT 2
#define TCP_SYN_RECV 3
#define TCP_CLOSE 7
#define TCP_LISTEN 10

/* The connections below each bound that the kernel does not tell of. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u64);
} unheard SEC(".maps");

/* begun is whether a connection has been established: tcp_memory is not asked about it any more. */
static __always_inline bool begun(struct tcp_sock *tp)
{
	__u8 state = ((struct sock *)tp)->__sk_common.skc_state;

	return state != TCP_LISTEN && state != TCP_SYN_SENT && state != TCP_SYN_RECV && state != TCP_CLOSE;
}

/* in_scope is whether a cgroup is the scope's, or below it. */
__noinline int in_scope(__u64 at)
{
	struct cgroup *cgroup = (struct cgroup *)at;
	int level, deepest = BPF_CORE_READ(cgroup, level);

	if (BPF_CORE_READ(cgroup, kn, id) == scope)
		return true;
#pragma clang loop unroll(disable)
	for (level = MAX_CGROUP_DEPTH; level >= 0; level--)
		if (level < deepest && ancestor_id(cgroup, level) == scope)
			return true;
	return false;
}

/* miss counts a connection that the kernel does not tell of. */
static __always_inline void miss(struct holding *h)
{
	__u64 none = 0, *n;
	__u32 i;

	h->care = UNHEARD;
	each_pool(h, i) {
		bpf_map_update_elem(&unheard, &h->pools[i], &none, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&unheard, &h->pools[i]);
		if (n)
			(*n)++;
	}
}

/*
 * stands is whether a connection is as its pools, as they were found now, have it: weir set
 * changes them within a generation. One that is not heard of is found once more, to be counted.
 */
static __always_inline bool stands(struct holding *h, struct holding *found)
{
	__u32 i, kept = 0;

	if (h->generation != generation || h->care == UNHEARD)
		return false;
#pragma clang loop unroll(full)
	for (i = 0; i <= ABOVE; i++)
		if (h->pools[i] != found->pools[i])
			return false;
	each_pool(h, i) {
		if (h->care == WHOLE && !affords(h->pools[i], 0))
			return false;
		kept = most(kept, keeps(h->pools[i]));
	}
	return h->care == WHOLE || h->kept == kept;
}

/*
 * renew finds the pools of a connection that has none yet, or others by now. One that stands
 * is only fitted: it may be idle, and its bound another one.
 */
static __always_inline struct holding *renew(struct tcp_sock *tp)
{
	struct holding *h = bpf_sk_storage_get(&holdings, tp, 0, 0), found = {};
	bool bound = find_pools(tp, &found);

	if (h && stands(h, &found)) {
		if (h->care == WATCHED)
			fit(tp, tp, h, ACKNOWLEDGED);
		return NULL;
	}
	if (h) {
		let_go(h);
		h->care = WATCHED;
		h->generation = generation;
		__builtin_memcpy(h->pools, found.pools, sizeof(h->pools));
	} else if (bound) {
		h = bpf_sk_storage_get(&holdings, tp, &found, BPF_SK_STORAGE_GET_F_CREATE);
	}
	return bound ? h : NULL;
}

/*
 * cap_send sets a send buffer that could become more than it may, for good: nobody looks
 * at it again, and TCP leaves it alone from then on.
 */
static __always_inline void cap_send(void *ctx, struct sock *sk, struct holding *h, __u64 may)
{
	__u32 is = sk->sk_sndbuf, could = could_send(sk, h);
	__u32 want = least(most(without(may, ever_beyond(sk)), LEAST_SEND), could);

	if (want != is && (want < could || is == h->sndbuf))
		set_sndbuf(ctx, sk, h, want);
}

/* cap_receive does so with the receive buffer. */
static __always_inline void cap_receive(void *ctx, struct sock *sk, struct holding *h, __u64 may)
{
	__u32 is = sk->sk_rcvbuf, could = could_receive(sk, h);
	__u32 want = least(most(may, LEAST_RECEIVE), could);

	if (want != is && (want < could || is == h->rcvbuf))
		set_rcvbuf(ctx, sk, h, want);
}

/*
 * fix sets aside what a connection may have of which the kernel tells nothing but its end:
 * one that nobody watched, before 6.12.
 */
static __always_inline void fix(struct tcp_sock *tp, struct holding *h)
{
	struct sock *sk = (struct sock *)tp;
	__u64 may = least(share(h), LEAST_GRANT);

	cap_receive(tp, sk, h, without(may, ever_beyond(sk)) / 2);
	cap_send(tp, sk, h, without(may, may_receive(sk)));
	have_all(h, most(sk->sk_sndbuf, sk->sk_wmem_queued) + ever_beyond(sk) + may_receive(sk));
}

SEC("iter/tcp")
int adopt(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct holding *h;
	__u64 all;

	if (!tp || !begun(tp) || !in_scope((__u64)cgroup_of((struct sock *)tp)))
		return 0;
	h = renew(tp);
	if (!h)
		return 0;
	all = largest((struct sock *)tp);
	h->word |= WORD_OF_MOMENTS & ~tp->bpf_sock_ops_cb_flags;
	if (!hear(tp, WORD_OF_END)) {
		miss(h);
	} else if (!h->sndbuf && !h->rcvbuf && afford_all(h, all)) {
		have_all(h, all);
	} else if (hear(tp, WORD_OF_WATCHED)) {
		watch_first(tp, tp, h);
		fit(tp, tp, h, ACKNOWLEDGED);
	} else {
		fix(tp, h);
	}
	return 0;
}

/* even is the part of soft that each connection has of which the kernel does not tell. */
static __always_inline __u64 even(struct holding *h)
{
	__u64 all = LARGEST, *n;
	struct bound *b;
	__u32 i;

	each_pool(h, i) {
		b = bound_of(h->pools[i]);
		n = bpf_map_lookup_elem(&unheard, &h->pools[i]);
		if (b && n)
			all = least(all, b->soft / most(*n, 1));
	}
	return all;
}

SEC("iter/tcp")
int squeeze(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct holding *h = tp ? bpf_sk_storage_get(&holdings, tp, 0, 0) : NULL;
	struct sock *sk = (struct sock *)tp;
	__u64 may;

	if (!h || h->care != UNHEARD || h->generation != generation)
		return 0;
	may = even(h);
	cap_receive(tp, sk, h, may / 2);
	cap_send(tp, sk, h, without(may, may_receive(sk)));
	return 0;
}

SEC("iter/tcp")
int disown(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = tcp_of(ctx);
	struct holding *h = tp ? bpf_sk_storage_get(&holdings, tp, 0, 0) : NULL;
	__u32 i;

	if (!h)
		return 0;
	each_pool(h, i)
		if (pool_of(h->pools[i]))
			return 0;
	bpf_sk_storage_delete(&holdings, tp);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
