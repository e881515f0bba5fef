// Package netprio carries priorities by cgroup v1's net_prio controller, where
// a policy asks for it: a group per priority, prio-0 to prio-15, with a map
// entry for every interface, and a group of its own, weir-NAME, for what has
// another priority per interface. Processes are moved, in this hierarchy only,
// and put back.
//
// Three limits are the kernel's. net_prio sets the priority of a packet only
// where its socket left it at 0: SO_PRIORITY and IP_TOS win over it. A map
// holds interfaces of the initial network namespace only. And before 5.15 a
// socket could know its v1 net_prio group or its v2 cgroup, not both: from the
// first group on, the v2 cgroups of sockets were gone for the whole host.
//
// It is not the mechanism that Weir prefers, it knows nothing of qdiscs or BPF,
// and it follows no processes: children inherit their parent's group, and that
// is all.
package netprio
