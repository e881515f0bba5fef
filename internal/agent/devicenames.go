package agent

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/workload"
)

// deviceNames finds the names of devices in any network namespace that has a process.
type deviceNames struct {
	here  string            // path of the namespace whose devices go by their names alone
	paths map[uint32]string // of all, by their inodes; nil: not looked for
}

func (d *deviceNames) of(netns uint32, index int) string {
	if d.paths == nil {
		d.look()
	}
	path, known := d.paths[netns]
	if !known {
		return fmt.Sprintf("device %d of a namespace without a process", index)
	}
	name := fmt.Sprintf("device %d", index)
	_ = host.InNetns(path, func() error {
		if device, err := net.InterfaceByIndex(index); err == nil {
			name = device.Name
		}
		return nil
	})
	if path == d.here {
		return name
	}
	return name + " of " + path
}

// look finds the namespaces. One that it misses has devices without names.
func (d *deviceNames) look() {
	d.paths = map[uint32]string{}
	all, _ := workload.Namespaces()
	for _, path := range append(all, d.here) {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			d.paths[uint32(st.Ino)] = path
		}
	}
}
