/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is known of each socket: whose it is, once its first packet has been looked at, and what it
 * has not been charged for yet.
 */
#ifndef WEIR_VERDICTS_H
#define WEIR_VERDICTS_H

#include "contract.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct known);
} verdicts SEC(".maps");

#endif
