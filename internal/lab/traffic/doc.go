// Package traffic makes and measures network traffic inside of network
// namespaces: bulk TCP streams and copies, requests with their latency, and floods
// of datagrams. Senders run in the process, or in a Worker, a process of their own inside of a
// cgroup. Nothing of it runs for longer than two minutes. It is not a benchmark
// of the fastest possible sender, and it never sends outside of the namespace
// that it is given.
package traffic
