package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// needed are the capabilities without which apply cannot keep its promises.
// CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON too, which came with 5.8.
var needed = []struct {
	name string
	bit  uint
}{
	{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN},   // qdiscs, programs on links and cgroups
	{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN},   // BPF, namespaces, mounts
	{"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE}, // sockets of other processes
}

// MissingCapabilities returns the names of the capabilities that apply needs
// and the calling thread does not have in effect; none for root.
func MissingCapabilities() ([]string, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return nil, fmt.Errorf("read capabilities: %w", err)
	}
	var missing []string
	for _, c := range needed {
		if sets[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			missing = append(missing, c.name)
		}
	}
	return missing, nil
}
