// Package workload finds out what a policy's selectors mean on this host at
// this moment: which cgroups a pattern matches, which file an executable is,
// which uid a user has, which sockets a process holds. It reaches the sockets
// of running processes through their file descriptors, so that others can tag
// them, and makes a running flow choose its transmit queue anew. It decides
// nothing and keeps nothing: no policy is judged here, no state is remembered,
// and the only thing ever written to a socket is the route reset of
// [ResetRoute].
package workload
