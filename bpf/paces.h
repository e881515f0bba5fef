/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How each connection below a limit is paced, kept in its socket beyond the
 * programs that paced it: whoever takes the limit away puts the pace back.
 */
#ifndef WEIR_PACES_H
#define WEIR_PACES_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct paced);
} paces SEC(".maps");

#endif
