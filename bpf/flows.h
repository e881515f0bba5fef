/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which contract do a packet's headers name? Flow rules are filed by their shape
 * (tuple), so one hash lookup finds a rule among any number of its shape; the
 * shapes are tried one after the other, the most specific first.
 */
#ifndef WEIR_FLOWS_H
#define WEIR_FLOWS_H

#include "packet.h"

/* Tuples in use. */
const volatile __u32 tuple_count;
/* Bytes before the network header. */
const volatile __u32 l2_length = ETH_HLEN;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_key);
	__type(value, __u32);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_TUPLES);
	__type(key, __u32);
	__type(value, struct tuple);
} tuples SEC(".maps");

/* lookup_flow looks with one end of the packet for the address, one for the port. */
static __always_inline __u32 *lookup_flow(struct packet *p, struct tuple *t, struct flow_key *key,
					  enum end addressed, enum end ported)
{
	int i;

	for (i = 0; i < 4; i++)
		key->address[i] = p->address[addressed][i] & t->mask[i];
	key->port = t->fields & TUPLE_PORT ? p->port[ported] : 0;
	return bpf_map_lookup_elem(&flows, key);
}

/* contract_of_tuple looks for one shape of rule, with each end in each role. */
static __always_inline __u32 contract_of_tuple(struct packet *p, struct tuple *t, __u16 index)
{
	struct flow_key key = { .tuple = index };
	__u32 ends = t->fields & (TUPLE_ADDRESS | TUPLE_PORT);
	__u32 *found;

	key.family = t->fields & TUPLE_ADDRESS ? p->family : 0;
	key.protocol = t->fields & TUPLE_PROTOCOL ? p->protocol : 0;
	key.dscp = t->fields & TUPLE_DSCP ? p->dscp : 0;
	found = lookup_flow(p, t, &key, DESTINATION, DESTINATION);
	if (!found && ends)
		found = lookup_flow(p, t, &key, SOURCE, SOURCE);
	if (!found && ends == (TUPLE_ADDRESS | TUPLE_PORT)) {
		found = lookup_flow(p, t, &key, DESTINATION, SOURCE);
		if (!found)
			found = lookup_flow(p, t, &key, SOURCE, DESTINATION);
	}
	return found ? *found : CONTRACT_UNCLAIMED;
}

/*
 * In a program that no kernel before 5.12 loads, which knows global functions of numbers only, a packet is looked up in one: so
 * the kernel proves it once, and not for each way to read a packet.
 */
#ifdef NEEDS_ATOMICS
#define PROVED_ONCE __noinline
#else
#define PROVED_ONCE static __always_inline
#endif

PROVED_ONCE __u32 contract_of_packet(struct packet *p)
{
	struct tuple *t;
	__u32 i, index, id;

	if (!p)
		return CONTRACT_UNCLAIMED;
#pragma clang loop unroll(disable)
	for (i = 0; i < MAX_TUPLES; i++) {
		if (i >= tuple_count)
			break;
		index = i;
		t = bpf_map_lookup_elem(&tuples, &index);
		if (!t)
			break;
		if (t->fields & TUPLE_PORT && p->ports == NO_PORTS)
			continue;
		/* Had it its ports, this rule might claim it: nobody can know. */
		if (t->fields & TUPLE_PORT && p->ports == PORTS_LOST)
			return CONTRACT_UNCLASSIFIED;
		id = contract_of_tuple(p, t, index);
		if (id)
			return id;
	}
	return CONTRACT_UNCLAIMED;
}

/* contract_of_headers is global: so the kernel proves it once, and not for each path that leads to it. */
__noinline __u32 contract_of_headers(struct __sk_buff *skb)
{
	struct packet p;

	if (!tuple_count)
		return CONTRACT_UNCLAIMED;
	switch (parse(skb, l2_length, &p)) {
	case PARSED:
		return contract_of_packet(&p);
	case NOT_IP:
		return CONTRACT_UNCLAIMED;
	default:
		return CONTRACT_UNCLASSIFIED;
	}
}

#endif
