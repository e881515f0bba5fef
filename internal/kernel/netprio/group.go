package netprio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/policy"
)

const (
	mapFile   = "net_prio.ifpriomap"
	procsFile = "cgroup.procs"
)

// LevelGroup is the name of the group that has one priority on all interfaces.
func LevelGroup(level policy.Level) string { return "prio-" + strconv.Itoa(int(level)) }

// NamedGroup is the name of the group of a workload that has another priority
// on each interface.
func NamedGroup(workload string) string { return "weir-" + workload }

// isGroup tells our groups from other directories.
func isGroup(name string) bool {
	if rest, ok := strings.CutPrefix(name, "weir-"); ok {
		return rest != "" && !strings.Contains(rest, "/")
	}
	rest, ok := strings.CutPrefix(name, "prio-")
	level, err := strconv.ParseUint(rest, 10, 8)
	return ok && err == nil && level < policy.Levels && LevelGroup(policy.Level(level)) == name
}

// entry is what a map holds for an interface under a priority. The kernel has
// no unset: 0 leaves the packet's priority, which is 0 too.
func entry(p policy.Priority, link string) uint32 {
	if level := p.On(link); level > 0 {
		return uint32(level)
	}
	return 0
}

// parseMap reads net_prio.ifpriomap: an interface and its priority a line.
func parseMap(content string) (map[string]uint32, error) {
	entries := make(map[string]uint32)
	for line := range strings.Lines(content) {
		link, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		priority, err := strconv.ParseUint(text, 10, 32)
		if !ok || link == "" || err != nil {
			return nil, fmt.Errorf("parse priority map: line %q", line)
		}
		entries[link] = uint32(priority)
	}
	return entries, nil
}

func readMap(dir string) (map[string]uint32, error) {
	content, err := os.ReadFile(dir + "/" + mapFile)
	if err != nil {
		return nil, fmt.Errorf("read priority map: %w", err)
	}
	return parseMap(string(content))
}

// writeMap makes a group's map as wanted on every interface that there is, and
// writes only what differs. The kernel takes one entry per write.
func writeMap(dir string, want func(link string) uint32) error {
	have, err := readMap(dir)
	if err != nil {
		return err
	}
	for link, priority := range have {
		if want(link) == priority {
			continue
		}
		line := fmt.Sprintf("%s %d", link, want(link))
		err := os.WriteFile(dir+"/"+mapFile, []byte(line), 0)
		if err != nil && !errors.Is(err, unix.ENODEV) { // the interface is gone
			return fmt.Errorf("write priority map entry %q: %w", line, err)
		}
	}
	return nil
}

// readProcs lists the processes of a group. Those of foreign pid namespaces,
// which the kernel shows as 0, are left out.
func readProcs(dir string) ([]uint32, error) {
	content, err := os.ReadFile(dir + "/" + procsFile)
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	var pids []uint32
	for text := range strings.FieldsSeq(string(content)) {
		pid, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read processes of %s: %w", dir, err)
		}
		if pid != 0 {
			pids = append(pids, uint32(pid))
		}
	}
	return pids, nil
}

// movePID moves a process, all of its threads and all of its sockets.
func movePID(dir string, pid uint32) error {
	err := os.WriteFile(dir+"/"+procsFile, []byte(strconv.FormatUint(uint64(pid), 10)), 0)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH):
		err = ErrGone
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV):
		err = ErrNoGroup
	}
	return fmt.Errorf("move process %d to %s: %w", pid, dir, err)
}
