package host

import (
	"errors"
	"fmt"
	"os"

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

// initialUserNamespace is the inode of the initial user namespace,
// PROC_USER_INIT_INO.
const initialUserNamespace = "user:[4026531837]"

// MissingCapabilities returns the names of the capabilities that apply needs
// and the calling thread does not have in effect; none for root. Those of
// another user namespace than the initial one, as root of a rootless container
// has them, reach nothing of the host and are missing.
func MissingCapabilities() ([]string, error) {
	// A kernel without user namespaces shows none.
	namespace, err := os.Readlink("/proc/thread-self/ns/user")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read user namespace: %w", err)
	}
	elsewhere := err == nil && namespace != initialUserNamespace
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return nil, fmt.Errorf("read capabilities: %w", err)
	}
	var missing []string
	for _, c := range needed {
		if elsewhere || sets[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			missing = append(missing, c.name)
		}
	}
	return missing, nil
}
