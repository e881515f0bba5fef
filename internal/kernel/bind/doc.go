// Package bind binds the new sockets of a cgroup to a device, as iproute2's ip vrf exec does:
// by a program of four instructions on the cgroup, which knows nothing but the device's index.
// It is iproute2's own form, attached as iproute2 attaches it, so that each of the two replaces
// the other's and both tell whose VRF a process is in. Sockets that are open stay where they are.
//
// The program is no part of a generation: it belongs to its cgroup, lives as long as that, and is
// there without any policy.
package bind
