// Package tc reads and applies the egress queueing of one link by netlink, in
// the network namespace of the calling thread (callers hold it with
// runtime.LockOSThread). [Read] says what is at the root of the link and, where
// that is Weir's, in which words it differs from what Weir builds; [Steps] are
// the netlink messages, one an [Op], that lead from there to a wanted
// [plan.Queue]; [Apply] and [Remove] run them. [Save] and [Restore] keep a
// foreign root over the time that Weir stands in its place. The kernel is the
// only database: everything about a queue is read back from it. Where the
// kernel has no tcx, [Attach] runs a BPF program at a [Hook] of the link. The
// package is not for choosing a scheduler, not for filters beside these programs,
// and not for queues at ingress (ifb).
package tc
