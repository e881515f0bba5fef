// Package hosts builds small networks out of throw-away network namespaces:
// hosts, wires between them with IPv4 and IPv6, routers, lines with a rate and one
// plain queue, and the kernel's own limits. Nothing has a name outside of the
// process: descriptors keep the namespaces alive, so that even a process that is
// killed leaves none behind. It is not for the host's own devices, which it never
// touches, and it knows nothing of contracts.
package hosts
