package netprio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A process is what putting processes back needs to know of one.
type process struct {
	parent uint32
	start  uint64 // clock ticks after boot
	group  string // path below the root of the net_prio hierarchy; "" if there is none
}

// readProcess wraps ErrGone if there is no such process.
func readProcess(pid uint32) (process, error) {
	dir := "/proc/" + strconv.FormatUint(uint64(pid), 10)
	stat, err := os.ReadFile(dir + "/stat")
	if err == nil {
		var cgroups []byte
		if cgroups, err = os.ReadFile(dir + "/cgroup"); err == nil {
			return parseProcess(string(stat), string(cgroups))
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	return process{}, fmt.Errorf("read process %d: %w", pid, err)
}

// parseProcess reads proc_pid_stat(5), in which the name may hold anything, and
// the line of net_prio in /proc/PID/cgroup.
func parseProcess(stat, cgroups string) (p process, err error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return process{}, fmt.Errorf("parse stat %q: %d fields after the name", stat, len(fields))
	}
	parent, parentErr := strconv.ParseUint(fields[1], 10, 32)
	start, startErr := strconv.ParseUint(fields[19], 10, 64)
	if err := errors.Join(parentErr, startErr); err != nil {
		return process{}, fmt.Errorf("parse stat %q: %w", stat, err)
	}
	p.parent, p.start = uint32(parent), start
	for line := range strings.Lines(cgroups) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), controller) {
			p.group = parts[2]
		}
	}
	return p, nil
}
