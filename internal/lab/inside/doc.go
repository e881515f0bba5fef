// Package inside runs programs as they run on a host of its own: in a network namespace that it is
// given, a cgroup, and a mount namespace with an /etc and a /run of its own, so that they look names up by
// files that the host's have nothing to do with; and, where asked, in a VRF, entered as weir vrf exec
// enters it. None of it has a name outside, and all of it ends with the process that made it. It is
// no container: it hides nothing else, and takes no privilege away.
package inside
