/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The contract between Weir's programs and its user space: every type that
 * crosses the border, with fixed widths and explicit padding. Go uses the types
 * that bpf2go generates from this header, never a mirror by hand.
 */
#ifndef WEIR_CONTRACT_H
#define WEIR_CONTRACT_H

#include "kernel.h"

/* Contracts with a meaning of their own; all others belong to workloads. */
enum contract_id {
	CONTRACT_UNCLAIMED = 0,	   /* no workload claims the packet */
	CONTRACT_UNCLASSIFIED = 1, /* its headers do not say whose it is */
	/*
	 * CONTRACT_LADDER + p says what a packet of priority p gets written that
	 * keeps its own: p itself, or the class of our own HTB, whose leaves are
	 * chosen by class id.
	 */
	CONTRACT_LADDER = 2,
};

#define LEVELS 16

/* A priority that leaves what others gave the packet. */
#define PRIORITY_KEEP 0xffffffff

/* What of a contract counts for limits. */
enum __attribute__((packed)) limited {
	HAS_MORE = 1 << 0,	   /* it has budgets, its own or those of prefixes, of which HAS_ONE does not tell */
	HAS_WEIGHT = 1 << 1,	   /* its packets are a bloc in the limits of others */
	DEPARTS_TOGETHER = 1 << 2, /* it has a departure for all links together */
	DEPARTS_HERE = 1 << 3,	   /* and one for this link */
	HAS_ONE = 1 << 4,	   /* all that it has is one budget, of its bytes on all links */
	ANSWERS = 1 << 5,	   /* what its sockets answer waits until what they got would have come */
	DEPARTS = DEPARTS_TOGETHER | DEPARTS_HERE,
};

/* What a contract means on one link. */
struct contract {
	__u32 priority; /* skb->priority as it is written, or PRIORITY_KEEP */
	__u16 serial;	/* tags that carry another serial are of a dead contract */
	enum limited limited; /* what of it counts for limits, enum limited; 0 is nothing */
	__u8 prefixes;	/* whether it has some of what it sends to prefixes */
	__u16 together; /* the budget of its packets on all links, or of what its sockets receive */
	__u16 together_packets;
	__u16 here;	/* and the one of those on this link */
	__u16 here_packets;
};

/*
 * A prefix to which a contract may send only so much. The contract and the family are
 * always whole: IPv4, mapped into IPv6, is in no prefix of IPv6's.
 */
struct prefix {
	__u32 bits; /* of what follows */
	__u16 contract;
	__u16 family; /* 4 or 6 */
	__u32 address[4]; /* network byte order */
};

/* The budgets of what goes to some prefixes together. */
struct toward {
	__u16 number; /* which of the contract's it is */
	__u16 bytes;
	__u16 packets;
	__u16 pad;
};

/* The packets of a contract in a limit that it shares with others. */
struct member {
	__u16 contract;
	__u16 budget; /* of that limit */
};

/* The routing domain to which new sockets of a contract are bound. */
struct domain {
	__u32 device; /* number of the VRF's */
	__u32 netns;  /* number of the network namespace of the links, where that device is */
	__u16 serial; /* of the contract, as tags have it */
	__u16 pad;
};

/* A tag names a contract explicitly: its serial above its id. 0 is no tag. */
#define TAG_CONTRACT(tag) ((tag) & 0xffff)
#define TAG_SERIAL(tag) ((tag) >> 16)

/*
 * Who made a socket. Written once when the socket is created, or by user space
 * for sockets that were there before; accepted sockets inherit their listener's.
 */
struct identity {
	__u32 tag;
	__u32 device;  /* of the executable, as in super_block->s_dev */
	__u64 inode;   /* of the executable */
	__u64 cgroup1; /* kernfs id in the policy's v1 hierarchy; 0: none */
};

/* An executable file. */
struct exe {
	__u64 inode;
	__u32 device;
	__u32 pad;
};

/* The links of a generation are numbered from FIRST_LINK on. */
enum link_number {
	EVERY_LINK = 0,
	FIRST_LINK = 1,
	NO_LINK = 0x3fff,
	/* Beside these: the socket is of UDP. */
	DATAGRAMS = 0x4000,
	/* Beside EVERY_LINK: workloads claim cgroups above the socket's, too. */
	NESTED = 0x8000,
};

/*
 * The answer that was found for a socket. Programs of two links may find it at
 * once, so it is read and written whole, in one 64-bit access.
 */
struct verdict {
	__u32 generation; /* of the programs that found it */
	__u16 contract;
	/*
	 * Where it holds, enum link_number: EVERY_LINK for all packets of the
	 * socket, a link's number for those of the connection there, NO_LINK for
	 * none, so that each goes by its headers.
	 */
	__u16 link;
} __attribute__((aligned(8)));

/* What a connection sent or received below limits and has not been charged for yet. */
struct tab {
	__u64 in;	/* the budgets that it is to be charged to; 0: none */
	__u64 ends;	/* when the next packet is charged, and these with it */
	__u32 bytes;
	__u32 segments;
	__u32 room;	/* the most that the bytes may be */
	__u32 held;	/* of the bytes, those of packets that may be held: not those that are bare */
};

/* How many workloads above a socket's own bind it. */
#define ABOVE 3

/* Whose limits bind a socket beside its own contract's. */
struct above {
	__u32 generation;	 /* of the programs that found it */
	__u16 contracts[ABOVE]; /* that claim a cgroup further up, the nearest first */
	__u16 pad;
};

/* What is known of a socket. With what comes before it in the kernel it fills one line of memory. */
struct known {
	struct verdict verdict;
	struct tab tab; /* of a connection */
	struct above above;
	__u32 calm; /* its limits are far from reached, so that what goes on its tab may lie on others meanwhile (rests.h) */
};

/*
 * The most limits that hold for a packet on its way out of a link: of its contract
 * and of those above, on all links, on this one and to a prefix, and the link's own, each
 * of bytes and of packets.
 */
#define BOUNDS (6 * (1 + ABOVE) + 2)

/* Which header fields a tuple of flow rules looks at. */
enum tuple_fields {
	TUPLE_ADDRESS = 1 << 0,
	TUPLE_PORT = 1 << 1,
	TUPLE_PROTOCOL = 1 << 2,
	TUPLE_DSCP = 1 << 3,
};

#define MAX_TUPLES 64

/*
 * Flow rules of one shape, the most specific shape first: one hash lookup per
 * end of the packet finds the rule among any number of its shape.
 */
struct tuple {
	__u32 mask[4]; /* of the address, network byte order, IPv4 mapped into IPv6 */
	__u32 fields;  /* enum tuple_fields */
};

/* The key of a flow rule; fields that its tuple does not look at are zero. */
struct flow_key {
	__u16 tuple;
	__u8 family; /* 4 or 6 where the tuple looks at an address */
	__u8 pad;
	__u8 protocol;
	__u8 dscp;
	__u16 port; /* network byte order */
	__u32 address[4];
};

/* What passed under one contract on one link; bytes as on the wire. */
struct counter {
	__u64 packets;
	__u64 bytes;
};

/* The two limits that a link itself may have. No workload has these numbers. */
enum direction {
	OWN_EGRESS = CONTRACT_UNCLAIMED,
	OWN_INGRESS = CONTRACT_UNCLASSIFIED,
};

/* Ticks of which votes are kept: one stands for fewer. */
#define SLOTS 512

/* Of a flow that waits in one line with all others: it has all on its way that it asks for. */
#define FILLS 2

/* What is known of one flow below one budget; bytes are those on the wire. */
struct flow {
	__u64 window;  /* over which its use is measured, ns: its round trip */
	__u64 load;    /* for which its pace was cut, times 1024; 0: not yet */
	__u64 said;    /* the part of its share that it uses, times the unit of its budget */
	__u64 vote;    /* that, less what is refunded for its overstay: what counts */
	__u64 over;    /* its overstay, ns times the unit */
	__u64 due;     /* tick in which the vote expires */
	__u64 since;   /* when it voted, ns */
	__u64 used;    /* bytes since then, each times the load */
	__u64 fresh;   /* bytes since then */
	__u32 size;    /* of its last packet */
	__u32 voting;  /* a CPU is about to vote for it */
	__u8 low;	/* its use fell at the last vote, which was not believed */
	__u8 app_limited; /* its application had no more to send */
	__u8 exact;	/* something else holds it to its share: it counts as no more than that */
	__u8 held;	/* and does so now: it counts as no less, if it uses half of it; FILLS: whatever it uses */
	__u32 measured; /* its use at the last vote as it was, twice the unit at most; 0: widen has seen it */
};

/*
 * An acknowledgement that waits in a queue of ours is so long, bytes, and one more for each unit
 * of 1 << WAITING_UNIT bytes that came and that it acknowledges.
 */
enum waiting {
	WAITING_LENGTH = 144,
	WAITING_UNIT = 6,
	WAITING_UNITS = 1100, /* the most: what GRO joins, in a frame that IPv6 allows everywhere */
};

/* As a link it stands for what sockets receive, by whichever. */
#define AT_SOCKETS 0xffffffff

/* So many parts of a nanosecond are the unit of what is paid in a bucket. */
#define FRACTION 16

/*
 * One limit and what is known of the flows below it. User space sets the first
 * twenty-two and then reads only. A limit of packets counts each as a full segment, so
 * that its bytes are packets times SEGMENT.
 *
 * Or it is a bloc in a limit: the flows of a contract with a weight, which together
 * count as so many there. It is what its limit is, but for its unit, and pays nothing back.
 */
struct budget {
	__u16 contract;	   /* whose limit it is; of a link's own its direction, enum direction */
	__u16 serial;	   /* stakes of another serial are in a limit that is gone */
	__u32 link;	   /* the link that it is of, or AT_SOCKETS; 0: all together */
	__u32 packets;	   /* whether it counts packets */
	__u32 toward;	   /* the number of its prefixes among the contract's; 0: all that it sends */
	__u32 within;	   /* the number of the limit that it is a bloc in; 0: it is a limit itself */
	__u32 member;	   /* the contract whose flows a bloc has */
	__u32 device;	   /* where acknowledgements of what its sockets got wait; 0: nowhere */
	__u32 class;	   /* in which class there, as skb->priority has it */
	__u64 unit;	   /* the vote of a greedy flow: its weight, times 1024 */
	__u64 limit;	   /* bytes a second */
	__u64 tick_length; /* resolution at which votes expire, ns */
	__u64 tick_bytes;  /* what the limit lets pass in a tick, times 1024 */
	__u64 burst;	   /* bytes that its buckets collect, if that was told; 0: it was not */
	__u64 depth;	   /* for how long the bucket of datagrams collects, ns */
	__u64 stream_depth; /* and that of TCP that nobody paces */
	__u64 slice;	   /* the time's worth of its share that the former gives a CPU at once, ns */
	__u64 price;	   /* of 1024 bytes in the bucket, by the share when the tick began, 1/16 ns */
	__u64 chunk;	   /* what the bucket gives at once, likewise, bytes */
	__u64 trim;	   /* factor of the load, times 1024: of a bloc the load of its limit */
	__u64 tick;	   /* number of the running one */
	__u64 sent;	   /* bytes beyond the limit: two slacks are none */
	__u64 load;	   /* sum of the standing votes */
	__u64 start;	   /* of the tick, ns */
	__u64 bytes;	   /* since the last tick was ended */
	__u64 excess;	   /* bytes beyond the limit: so much first segments still owe */
	__u64 paid;	   /* until when the bucket is paid, 1/16 ns */
	__u64 streams_paid; /* until when the bucket of streams is paid, 1/16 ns */
	__u64 offered;	   /* when the limit will have brought what handshakes offered, ns */
	__u64 spaced;	   /* when the next connection has its turn to answer, where answers wait, ns */
	__s64 unheld;	   /* bytes that came and that no acknowledgement stands for which waits; less than none where two took them */
	__u64 wait;	   /* how long the latest acknowledgement waited in its class, ns */
	__u64 total;	   /* bytes before the running tick */
	__u64 window;	   /* when the running window began, ns */
	__u64 in_window;   /* bytes in it */
	__u64 last;	   /* bytes a second in the one before it */
	__u64 busiest;	   /* the most in any before it */
	__u64 dropped;	   /* packets */
	__u64 marked;	   /* packets that carry the mark of congestion instead */
	__u64 stand;	   /* of a bloc, the tick until which its votes stand in the mean, times 1024 */
	struct flow vote;    /* of a bloc, its own in its limit */
	struct flow others;  /* what is no TCP */
	struct flow streams; /* TCP that nobody paces */
	__s32 ring[SLOTS];  /* votes by the tick in which they expire */
};

/* Whose departures are limited: a contract's, on all links together (0) or on one. */
struct departing {
	__u32 contract;
	__u32 link; /* index of its device */
};

/*
 * One limit that is held by departure times. User space sets the rate and then reads
 * only. The windows are of the times at which packets may leave.
 */
struct departure {
	struct bpf_spin_lock lock;
	__u32 flows;	 /* that sent in the last round, or have in this one */
	__u32 round;	 /* the running one */
	__u32 seen;	 /* flows in it */
	__u64 rate;	 /* bytes a second; 0: none */
	__u64 next;	 /* until when it is taken, ns */
	__u64 ahead;	 /* until when the part of it is taken that may go ahead, ns */
	__u64 passed;	 /* bytes */
	__u64 window;	 /* when the running window began, ns */
	__u64 in_window; /* bytes in it */
	__u64 last;	 /* bytes a second in the one before it */
	__u64 busiest;	 /* the most in any before it */
	__u64 dropped;	 /* packets */
	__u64 marked;	 /* packets that carry the mark of congestion instead of waiting unseen */
};

/* What is known of a flow in one limit that is held by departure times. */
struct turn {
	__u64 leaves; /* when its latest packet may, ns */
	__u64 taken;  /* until when its even part of the limit is, ns */
	__u32 round;  /* the last one that it sent in */
	__u32 pad;
};

/* What a connection knows of one limit that it is below. */
struct stake {
	__u16 budget; /* its number; 0: none */
	__u16 serial;
	__u32 hook;    /* where it is charged, as struct load has it */
	__u64 charged; /* when its last packet was, ns */
	struct flow flow;
};

/* More than a link holds a packet by: it may have come in by another, below two limits. */
#define STAKES (BOUNDS + 2)

/* Of so many of its latest bytes a connection knows what they are like. */
#define RECENT (1 << 20)

/* What a connection knows of the limits that it is below. */
struct paced {
	__u64 window;  /* its round trip, ns */
	__u64 limits;  /* the sum of those of which its pace is the least share, bytes a second */
	__u64 heard;   /* when TCP last told of a round trip, ns */
	__u64 nearest; /* its shortest round trip, as far as that is not longer by now, ns */
	__u64 usual;   /* the mean of what they were measured as, ns */
	__u64 unpaced; /* bytes that it sent while nobody paced it */
	__u64 sent;    /* all bytes that it sent */
	__u64 aged;    /* when the next two were halved, ns: they are of the last second or two */
	__u32 wire;    /* bytes of its latest segments that carry any */
	__u32 payload; /* of those */
	__u32 head;    /* bytes on the wire of a segment, less those of its payload */
	__u32 pace;    /* as we have set it; 0: we have not */
	__u32 own;     /* what the application had set; ~0: nothing */
	__u32 mean;    /* bytes on the wire of a segment, of its latest ones, times 1024 */
	__u32 wider;   /* what its window is more than its share of a round trip, times 1024 */
	__u32 full;    /* payload of a full segment, bytes; 0: not known yet */
	__u32 clamp;   /* what its congestion window was clamped to before we did that; 0: we have not */
	__u8 held;     /* it has had all of its share */
	__u8 app_limited; /* it has not, as there was no more to send */
	__u8 late;     /* something came too late to be made up for, since it was looked at */
	__u8 waits;    /* what it answers waits, so that it is held back from its first packet on */
	__u32 device;  /* where what it acknowledges waits, as the outermost of its limits has it; 0: nowhere */
	__u32 class;   /* and in which class */
	__s32 unanswered; /* bytes on the wire that it got and has not acknowledged, or less than none, of those to come */
	__u32 place;   /* of the limit whose share is the least, among its stakes, when it was looked at last */
	__u32 owed;    /* bytes that it got since it had a turn to answer */
	__u32 line;    /* the number of that limit */
	__u64 share;   /* the least of its shares when it was looked at last, bytes a second on the wire */
	__u64 due;     /* when what it got so far would have come at that, ns */
	__u64 leaves;  /* when it may answer that, ns: what it answers waits for it */
	__u64 waited;  /* how much later than its line its last answer was, ns */
	__u64 answered; /* when it last sent by a link where that waits, ns */
	__u64 round;   /* when its running round trip began, ns */
	__u32 in_round; /* bytes on the wire that came in it */
	__u16 fills;   /* half of what it asks for came in the last one, or more */
	__u16 rested;  /* nothing of what it answers waited when it was last asked, and link_egress did not ask again (rests.h) */
	__u64 rests;   /* until which jiffy its window is left alone, as it may have more than TCP asks for, or its pace */
	__u64 asked;   /* and that until so many of its bytes are acknowledged */
	struct stake stakes[STAKES];
};

/* What the TCP sockets of a contract may hold in memory together, bytes. */
struct bound {
	__u64 soft;
	__u64 max;    /* 0: as much as they want */
	__u32 made;   /* when the pool was made */
	__u32 refuse; /* connections that there is no room for; else they are squeezed */
};

/* What the TCP sockets of a contract hold, and may take before anybody is asked. */
struct pool {
	__u64 serial;  /* of the contract */
	__u64 watched; /* bytes of those that are watched */
	__u64 whole;   /* bytes set aside for those that need not be */
	__u64 most;    /* of both together, so far */
	__u64 sockets; /* that are watched */
	__u64 wholes;  /* and those that need not be */
	__u64 throttled; /* times that a buffer was made smaller than TCP wanted it */
	__u64 squeezed;	 /* connections that did not get what they need to work well */
	__u64 refused;	 /* connections that there was no room for */
};

/* Who looks after what a socket holds. */
enum __attribute__((packed)) care {
	WATCHED = 0, /* its buffers are fitted to its share as that changes */
	WHOLE = 1,   /* what it may take is set aside, and nobody watches it */
	UNHEARD = 2, /* the kernel does not tell of it: fitted once, and in no sum of its pools */
};

/* What a socket has of the pools that it is in. */
struct holding {
	__u64 pools[1 + ABOVE]; /* its own contract's, and those above */
	__u32 generation; /* of the programs that found them */
	__u32 sends;	  /* bytes that its send queue holds, or may take at once */
	__u32 receives;	  /* and its receive queue */
	__u32 counts;	  /* as so many bytes in its pools */
	__u32 kept;	  /* at least as so many, because one of them refuses who finds no room */
	__u32 sndbuf;	  /* as we asked for it; 0: we have not */
	__u32 rcvbuf;
	__u32 own_sndbuf; /* as TCP or the application had it */
	__u32 own_rcvbuf;
	__u8 locks; /* which of those the application had set, SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK */
	enum care care;
	__u8 word; /* what TCP tells of it for our sake alone, BPF_SOCK_OPS_*_CB_FLAG */
	__u8 calm; /* round trips that it has needed little for */
	__u64 got; /* bytes that it had received when its receive buffer was fitted last */
};

/*
 * Room for the patterns that match cgroups at their birth, in bytes. A NUL at the
 * end tells a pattern from what is longer and begins like it.
 */
#define BIRTH_PATH_LEN 252 /* "1" for v1, 249 characters, NULs */
#define BIRTH_NAME_LEN 128 /* 127 characters, NUL */

struct birth_path {
	char path[BIRTH_PATH_LEN];
};

struct birth_name {
	char name[BIRTH_NAME_LEN];
};

/* Key of a longest-prefix match over the characters of a path. */
struct birth_prefix {
	__u32 bits;
	char path[BIRTH_PATH_LEN];
};

/* What a prefix claims, and its own length in characters. */
struct birth {
	__u32 contract;
	__u32 length;
};

/* What births could not file because a table was full. */
struct losses {
	__u64 tags;    /* processes that did not inherit their parent's tag */
	__u64 cgroups; /* cgroups that are not claimed though a pattern matches */
};

_Static_assert(sizeof(struct contract) == 16, "contract");
_Static_assert(sizeof(struct prefix) == 24, "prefix");
_Static_assert(sizeof(struct toward) == 8, "toward");
_Static_assert(sizeof(struct member) == 4, "member");
_Static_assert(sizeof(struct identity) == 24, "identity");
_Static_assert(sizeof(struct exe) == 16, "exe");
_Static_assert(sizeof(struct verdict) == 8, "verdict");
_Static_assert(sizeof(struct tab) == 32, "tab");
_Static_assert(sizeof(struct known) == 56, "known");
_Static_assert(sizeof(struct tuple) == 20, "tuple");
_Static_assert(sizeof(struct flow_key) == 24, "flow_key");
_Static_assert(sizeof(struct counter) == 16, "counter");
_Static_assert(sizeof(struct flow) == 88, "flow");
_Static_assert(sizeof(struct budget) == 280 + 3 * 88 + 4 * SLOTS, "budget");
_Static_assert(sizeof(struct above) == 12, "above");
_Static_assert(sizeof(struct departing) == 8, "departing");
_Static_assert(sizeof(struct departure) == 96, "departure");
_Static_assert(sizeof(struct turn) == 24, "turn");
_Static_assert(sizeof(struct stake) == 16 + 88, "stake");
_Static_assert(sizeof(struct paced) == 200 + STAKES * 104, "paced");
_Static_assert(sizeof(struct bound) == 24, "bound");
_Static_assert(sizeof(struct pool) == 72, "pool");
_Static_assert(sizeof(struct holding) == 80, "holding");
_Static_assert(sizeof(struct birth_prefix) == 256, "birth_prefix");
_Static_assert(sizeof(struct losses) == 16, "losses");

#endif
