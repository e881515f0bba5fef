/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What contracts mean on each link, by the number that the link has in its generation.
 */
#ifndef WEIR_LINKS_H
#define WEIR_LINKS_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 2);
		__uint(key_size, sizeof(__u32));
		__uint(value_size, sizeof(struct contract));
	});
} links SEC(".maps");

#endif
