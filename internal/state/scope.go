package state

import "path/filepath"

// A Scope bundles what one instance of Weir owns. Labs and tests run in scopes
// of their own, side by side with the host's.
type Scope struct {
	Cgroup string // v2 directory whose sockets are its concern; "" where there is no v2 hierarchy
	Pins   string // directory below a bpffs
	Run    string // directory of locks, record, journal and proof
	Netns  string // network namespace of its links: a path, or "" for the caller's
}

// HostPins is where the host's own scope keeps its pins.
const HostPins = "/sys/fs/bpf/weir"

// Host returns the scope of the whole host, whose v2 hierarchy is mounted at
// cgroup2; "" where it is mounted nowhere.
func Host(cgroup2 string) Scope {
	return Scope{Cgroup: cgroup2, Pins: HostPins, Run: "/run/weir"}
}

func (s Scope) recordFile() string  { return filepath.Join(s.Run, "state.json") }
func (s Scope) journalFile() string { return filepath.Join(s.Run, "journal.json") }
func (s Scope) proofFile() string   { return filepath.Join(s.Run, "proof.json") }
func (s Scope) lockFile() string    { return filepath.Join(s.Run, "lock") }
func (s Scope) gateFile() string    { return filepath.Join(s.Run, "gate") }
func (s Scope) guardFile() string   { return filepath.Join(s.Run, "guard") }
