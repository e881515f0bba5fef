// Package tc reads and applies the egress queueing of one link by netlink, in
// the network namespace of the calling thread (callers hold it with
// runtime.LockOSThread). [Read] says what is at the root of the link and, where
// that is Weir's, in which words it differs from what Weir builds; [Steps] are
// the netlink messages, one an [Op], that lead from there to a wanted
// [plan.Queue]; [Apply] and [Remove] run them. [Save] and [Restore] keep a
// foreign root over the time that Weir stands in its place. The kernel is the
// only database: everything about a queue is read back from it. Where the
// kernel has no tcx, [Attach] runs a BPF program at a [Hook] of the link. What holds a
// link itself to a limit stands at its hooks as well: a filter that drops
// ([SetPolice]), or one that sends what arrives over an ifb with a queue
// ([OpenDetour]). The package is not for choosing a scheduler, and not for other
// filters.
package tc
