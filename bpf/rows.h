/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where the meter keeps what it finds.
 */
#ifndef WEIR_ROWS_H
#define WEIR_ROWS_H

#include "meter.h"

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct row_key);
	__type(value, struct row);
} rows SEC(".maps");

static __always_inline struct totals *total(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&totals, &zero);
}

/* charge adds time to the row of who runs, or is interrupted, for an owner, and returns it; NULL: there is none. */
static __always_inline struct row *charge(struct totals *t, enum work work, struct owner *owner, __u64 ns)
{
	struct row_key key = {
		.owner = *owner,
		.cgroup = bpf_get_current_cgroup_id(),
		.tgid = bpf_get_current_pid_tgid() >> 32,
	};
	struct row *r = bpf_map_lookup_elem(&rows, &key);

	if (!r) {
		struct row fresh = {};

		bpf_get_current_comm(fresh.comm, sizeof(fresh.comm));
		bpf_map_update_elem(&rows, &key, &fresh, BPF_NOEXIST);
		r = bpf_map_lookup_elem(&rows, &key);
	}
	if (!r) {
		t->lost += ns;
		return NULL;
	}
	r->ns[work] += ns;
	if (!r->comm[0]) /* another CPU made the row */
		bpf_get_current_comm(r->comm, sizeof(r->comm));
	return r;
}

#endif
