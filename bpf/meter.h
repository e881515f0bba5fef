/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The border between the meter's programs and Go: whose time went, to whose packets,
 * at what. Times are in ns. Of what happens often one in 1 << shift is timed and
 * counts for all of them; what is only counted is counted each time.
 */
#ifndef WEIR_METER_H
#define WEIR_METER_H

#include <linux/types.h>

/* What time goes to. */
enum work {
	WORK_IRQ,    /* hard interrupts that ask for NET_RX */
	WORK_RX,     /* NET_RX softirqs */
	WORK_TX,     /* NET_TX softirqs */
	WORK_OTHER,  /* TASKLET, TIMER and HRTIMER softirqs in which packets went */
	WORK_SEND,   /* what a task does in sendmsg, as sampled */
	WORK_RECV,   /* in recvmsg */
	WORK_THREAD, /* NAPI in a kernel thread of its own */
	WORKS,
};

/* Whose packets are. */
enum owned {
	OWNED_BY_NOBODY,   /* not attributed */
	OWNED_BY_CGROUP,   /* id: its cgroup v2 */
	OWNED_BY_CONTRACT, /* id: its number, as link_egress has found it */
	FORWARDED,         /* id: netns << 32 | ifindex that it left by */
	DROPPED,
};

struct owner {
	__u64 id;
	enum owned owned;
	__u32 zero;
};

/* A row of the matrix, on one CPU: time of whom, for whom. */
struct row_key {
	struct owner owner;
	__u64 cgroup; /* v2, of who was interrupted */
	__u32 tgid;   /* 0: nobody, the CPU was idle */
	__u32 zero;
};

struct row {
	__u64 ns[WORKS];
	__u64 packets; /* on the wire, sent or received in softirqs, in parts of WHOLE */
	__u64 bytes;   /* of these, with the headers that they had then, in parts of WHOLE */
	char comm[16]; /* of who was interrupted */
};

/* Durations of NET_RX softirqs: eight parts to each power of two. */
#define DURATION_PARTS 8
#define DURATIONS (40 * DURATION_PARTS)
/* Packets a poll: each number by itself, and more than that. */
#define POLL_SIZES 257

/*
 * When the programs count, and for how much: they run for a part of the time where they would cost too
 * much else, and what they see then stands for the rest. Numbers are in parts of WHOLE.
 */
#define WHOLE 256

struct gate {
	__u32 weight; /* of what happens now, in parts of WHOLE; 0: nothing counts */
	__u32 window; /* which part of the time: what began in another one has no end */
};

/* What happened on a CPU: numbers in parts of WHOLE, but for samples. */
struct totals {
	__u64 runs[4];    /* hard interrupts that ask for NET_RX, and softirqs: enum work */
	__u64 timed[4];   /* of these */
	__u64 stood[4];   /* for which those that are timed stand: as many as ran, but for the luck of the draw */
	__u64 ns[4];      /* what they took, as the rows sum up */
	__u64 polls;      /* of NAPI, in softirqs */
	__u64 packets;    /* in these polls */
	__u64 exhausted;  /* polls that used up their budget */
	__u64 lost;       /* ns for which no row was free */
	__u64 samples;    /* of tasks: who was idle is not sampled */
	__u64 sampled[4]; /* of these in NET_RX and NET_TX softirqs: a second opinion on ns */
};

_Static_assert(sizeof(struct row_key) == 32, "as hashed: no padding");
_Static_assert(sizeof(struct row) == 8 * WORKS + 32, "as Go reads it");

#endif
