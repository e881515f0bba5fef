// Package traffic makes and measures network traffic inside of network
// namespaces: bulk TCP streams and copies, UDP at a packet rate, requests with
// their latency. Senders run in the process, or in a Worker, a process of their
// own inside of a cgroup. All of it is bounded in time and volume. It is not a
// benchmark of the fastest possible sender, and it never sends outside of the
// namespace that it is given.
package traffic
