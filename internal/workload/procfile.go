package workload

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A procStat is what we need of /proc/PID/stat.
type procStat struct {
	name    string
	state   byte
	parent  uint32
	threads uint32
	start   uint64
}

// exited reports a process that only waits to be waited for. One whose first
// thread alone has ended is a zombie with other threads, and lives.
func (s procStat) exited() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

// parseStat reads proc_pid_stat(5). The name stands in parentheses and may
// hold anything, further parentheses included.
func parseStat(content []byte) (procStat, error) {
	open, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if open < 0 || end < open {
		return procStat{}, fmt.Errorf("parse stat %q: no name", content)
	}
	// From field 3, the state, on; 4 is the parent, 20 the number of threads, 22
	// the start time.
	fields := strings.Fields(string(content[end+1:]))
	if len(fields) < 20 || len(fields[0]) != 1 {
		return procStat{}, fmt.Errorf("parse stat %q: %d fields after the name", content, len(fields))
	}
	parent, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil {
		return procStat{}, fmt.Errorf("parse parent: %w", err)
	}
	threads, err := strconv.ParseUint(fields[17], 10, 32)
	if err != nil {
		return procStat{}, fmt.Errorf("parse number of threads: %w", err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("parse start time: %w", err)
	}
	return procStat{string(content[open+1 : end]), fields[0][0], uint32(parent), uint32(threads), start}, nil
}

func (d procDir) stat() (procStat, error) {
	content, err := d.read("stat")
	if err != nil {
		return procStat{}, err
	}
	return parseStat(content)
}

// parseCgroups reads /proc/PID/cgroup: the v2 path, and the v1 path for each
// controller or "name=X". No name of a cgroup has a newline in it. A zombie may
// outlive its cgroup: its path ends with " (deleted)", and leads nowhere.
func parseCgroups(content []byte) (v2 string, v1 map[string]string) {
	v1 = make(map[string]string)
	for line := range strings.Lines(string(content)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if controllers == "" {
			v2 = path
			continue
		}
		for _, c := range strings.Split(controllers, ",") {
			v1[c] = path
		}
	}
	return v2, v1
}

// A procStatus is what we need of /proc/PID/status.
type procStatus struct {
	process uint32 // another than PID where PID is a thread of it, 0 when it is gone
	uid     uint32 // of the filesystem: the one that sockets get which the process makes
}

// parseStatus reads proc_pid_status(5). A newline in the process's name is
// escaped there.
func parseStatus(content []byte) (procStatus, error) {
	var process, uid uint64
	noProcess, noUID := errors.New("no thread group"), errors.New("no uids")
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(line, ":")
		switch fields := strings.Fields(value); {
		case key == "Tgid" && len(fields) == 1:
			process, noProcess = strconv.ParseUint(fields[0], 10, 32)
		case key == "Uid" && len(fields) == 4:
			uid, noUID = strconv.ParseUint(fields[3], 10, 32)
		}
	}
	if err := errors.Join(noProcess, noUID); err != nil {
		return procStatus{}, fmt.Errorf("parse status: %w", err)
	}
	return procStatus{uint32(process), uint32(uid)}, nil
}

func (d procDir) status() (procStatus, error) {
	content, err := d.read("status")
	if err != nil {
		return procStatus{}, err
	}
	return parseStatus(content)
}
