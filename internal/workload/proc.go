package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A procDir is an open /proc/PID. It holds the kernel's struct pid: reads
// through it are of that process or fail with ESRCH, never of another process
// that got the same number since.
type procDir int

// openProc opens the directory of a process. The caller closes it.
func openProc(pid uint32) (procDir, error) {
	fd, err := unix.Open("/proc/"+strconv.FormatUint(uint64(pid), 10), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, goneAs(err)
	}
	return procDir(fd), nil
}

func (d procDir) close() { unix.Close(int(d)) }

// read returns a file of the process.
func (d procDir) read(name string) ([]byte, error) {
	fd, err := unix.Openat(int(d), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, goneAs(err)
	}
	defer unix.Close(fd)
	var content []byte
	chunk := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, chunk)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, goneAs(err)
		}
		if n == 0 {
			return content, nil
		}
		content = append(content, chunk[:n]...)
	}
}

// link returns the target of a symbolic link of the process.
func (d procDir) link(name string) (string, error) {
	target, err := readlinkAt(int(d), name)
	return target, goneAs(err)
}

func readlinkAt(dir int, name string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// goneAs maps what the kernel says of a process that has exited.
func goneAs(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	return err
}

// A procStat is what we need of /proc/PID/stat.
type procStat struct {
	name   string
	state  byte
	parent uint32
	start  uint64
}

// exited reports a process that only waits to be waited for.
func (s procStat) exited() bool { return s.state == 'Z' || s.state == 'X' }

// parseStat reads proc_pid_stat(5). The name stands in parentheses and may
// hold anything, further parentheses included.
func parseStat(content []byte) (procStat, error) {
	open, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if open < 0 || end < open {
		return procStat{}, fmt.Errorf("parse stat %q: no name", content)
	}
	// From field 3, the state, on; 4 is the parent, 22 the start time.
	fields := strings.Fields(string(content[end+1:]))
	if len(fields) < 20 || len(fields[0]) != 1 {
		return procStat{}, fmt.Errorf("parse stat %q: %d fields after the name", content, len(fields))
	}
	parent, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil {
		return procStat{}, fmt.Errorf("parse parent: %w", err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("parse start time: %w", err)
	}
	return procStat{string(content[open+1 : end]), fields[0][0], uint32(parent), start}, nil
}

func (d procDir) stat() (procStat, error) {
	content, err := d.read("stat")
	if err != nil {
		return procStat{}, err
	}
	return parseStat(content)
}

// parseCgroups reads /proc/PID/cgroup: the v2 path, and the v1 path for each
// controller or "name=X".
func parseCgroups(content []byte) (v2 string, v1 map[string]string) {
	v1 = make(map[string]string)
	for line := range strings.Lines(string(content)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		// A process may outlive its cgroup's directory as a zombie.
		path = strings.TrimSuffix(path, " (deleted)")
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

// parseUID finds the filesystem uid in /proc/PID/status: the one that the
// kernel stamps on the sockets that the process makes.
func parseUID(content []byte) (uint32, error) {
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if fields := strings.Fields(rest); len(fields) == 4 {
				uid, err := strconv.ParseUint(fields[3], 10, 32)
				return uint32(uid), err
			}
		}
	}
	return 0, errors.New("parse status: no uids")
}
