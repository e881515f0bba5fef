// Package memcg holds what the TCP sockets of a cgroup have in memory by the kernel's own
// means, where a policy asks for it: memory.kmem.tcp.limit_in_bytes of cgroup v1's memory
// controller, of the cgroup and of all below it, and puts back what was there before.
//
// Three limits are the kernel's. A socket counts where its process was when it was made or
// accepted, and only if that very cgroup had a limit by then: so each one below gets the
// same limit, and those that are born later have none until the next Apply. What an open
// socket holds is not counted. And a cgroup that had a limit once goes on counting without one.
//
// It is not the mechanism that Weir prefers; cgroup v2 has nothing like it. It follows no births
// and moves no processes.
package memcg
