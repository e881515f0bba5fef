package scoped

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/state"
)

// prefix begins the name of a scope: weir-lab-PID-NUMBER.
const prefix = "weir-lab-"

const (
	pins = "/sys/fs/bpf"
	run  = "/run"
)

func scope(cgroup2, name string) state.Scope {
	return state.Scope{
		Cgroup: filepath.Join(cgroup2, name),
		Pins:   filepath.Join(pins, name),
		Run:    filepath.Join(run, name),
	}
}

// leftovers are the scopes of labs whose process is dead, as kill -9 leaves
// them. Their programs would see every fork and exit of the host until it
// reboots.
func leftovers(cgroup2 string) []state.Scope {
	var names []string
	for _, dir := range []string{cgroup2, pins, run} {
		paths, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // no bad pattern
		for _, path := range paths {
			names = append(names, filepath.Base(path))
		}
	}
	slices.Sort(names)
	var all []state.Scope
	for _, name := range slices.Compact(names) {
		if dead(name) {
			all = append(all, scope(cgroup2, name))
		}
	}
	return all
}

// dead reports whether the process that a scope is named after is no more.
func dead(name string) bool {
	digits, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "-")
	pid, err := strconv.Atoi(digits)
	return err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// remove takes away what a scope leaves behind once its links are gone, with
// their queues, as they are when nobody holds their namespaces any more.
func remove(s state.Scope) error {
	record, err := s.Load()
	err = errors.Join(err, bpf.Room{Dir: s.Pins, Cgroup: s.Cgroup}.Remove())
	if record != nil && record.BPFFS {
		if e := host.UnmountBPFFS(pins); !errors.Is(e, host.ErrBPFFSInUse) { // then others have come to rely on it
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, lab.RemoveCgroups(s.Cgroup), os.RemoveAll(s.Run))
}
