package state

import "path/filepath"

// A Scope bundles what one instance of Weir owns. Labs and tests run in scopes
// of their own, side by side with the host's.
type Scope struct {
	Cgroup string // v2 directory whose sockets are its concern
	Pins   string // directory below a bpffs
	Run    string // directory of lock, record and journal
	Netns  string // network namespace of its links: a path, or "" for the caller's
}

// HostPins is where the host's own scope keeps its pins.
const HostPins = "/sys/fs/bpf/weir"

// Host returns the scope of the whole host, whose v2 hierarchy is mounted at
// cgroup2.
func Host(cgroup2 string) Scope {
	return Scope{Cgroup: cgroup2, Pins: HostPins, Run: "/run/weir"}
}

func (s Scope) recordFile() string { return filepath.Join(s.Run, "state.json") }

func (s Scope) journalFile() string { return filepath.Join(s.Run, "journal.json") }
