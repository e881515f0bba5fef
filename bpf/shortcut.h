/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A socket of UDP's keeps a shortcut beside its verdict: whose its packets are, which priority they get, and the one budget
 * that they are charged to. So nothing else is looked up for a packet of it: each line of memory that is asked for
 * takes about as long as ten instructions, and that is most of what a limit costs that is not reached.
 *
 * It holds for one link, and for one edition of what contracts mean there. Who changes a contract takes the link's
 * edition away, makes the change, and gives the link a new one: so no shortcut outlives what it was found by, wherever
 * the change is cut off.
 *
 * What it does not promise: anything on links that have a queue of ours or a limit of their own. There more has to be
 * known of each packet, and they have no editions. And a socket that is silent while contracts are changed 134
 * million times may take its shortcut to hold.
 */
#ifndef WEIR_SHORTCUT_H
#define WEIR_SHORTCUT_H

#include "contract.h"
#include "resolve.h"

#include <bpf/bpf_helpers.h>

/* The link's edition, a multiple of 1 << EDITION_SHIFT; NO_EDITION: it has none, for good or for now. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, enum edition);
} edition SEC(".maps");

static __always_inline __u32 edition_now(void)
{
	__u32 zero = 0, *now = bpf_map_lookup_elem(&edition, &zero);

	return now ? *(volatile __u32 *)now : NO_EDITION;
}

union whole_shortcut {
	struct shortcut shortcut;
	__u64 bits;
};

static __always_inline struct shortcut kept_by(struct known *at)
{
	union whole_shortcut w = { .bits = *(volatile __u64 *)&at->shortcut };

	return w.shortcut;
}

/* datagrams says whether it is a socket of UDP's of which something is known. */
static __always_inline bool datagrams(struct known *at) { return at && remembered(at).link & DATAGRAMS; }

/* shortcut_priority is what the packets of a shortcut get, or from 1 << EDITION_SHIFT on: it does not hold in an edition. */
static __always_inline __u32 shortcut_priority(struct shortcut s, __u32 now)
{
	return now == NO_EDITION ? -1 : s.edition - now;
}

/*
 * leave_shortcut leaves one in a socket, where its contract is all that binds it and has one budget at most. That answers wait
 * is nothing to datagrams. The edition was read before the contract.
 */
static __always_inline void leave_shortcut(struct known *at, struct verdict v, struct contract *c, __u32 now)
{
	union whole_shortcut w = { .shortcut = { .contract = v.contract } };
	bool keeps = c->priority == PRIORITY_KEEP;

	if (now == NO_EDITION || v.link != (EVERY_LINK | DATAGRAMS) || c->limited & ~(HAS_ONE | ANSWERS) ||
	    (!keeps && c->priority >= EDITION_KEEP))
		return;
	w.shortcut.edition = now + (keeps ? EDITION_KEEP : c->priority);
	if (c->limited & HAS_ONE)
		w.shortcut.budget = c->together;
	*(volatile __u64 *)&at->shortcut = w.bits;
}

#endif
