/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How much each connection below a limit of what it receives asks its peer for, kept
 * in its socket as its pace is: whoever takes the limit away puts the window back.
 * Of struct paced the pace is the window here, in bytes of payload.
 */
#ifndef WEIR_WINDOWS_H
#define WEIR_WINDOWS_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

#define SOL_TCP 6
#define TCP_WINDOW_CLAMP 10

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct paced);
} windows SEC(".maps");

#endif
