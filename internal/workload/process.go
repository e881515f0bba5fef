package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	// ErrGone says that a process has exited.
	ErrGone = errors.New("no such process")

	// ErrPIDNamespace says that we are not in the initial pid namespace: our
	// numbers of processes are then not those that the kernel side sees.
	ErrPIDNamespace = errors.New("not in the initial pid namespace")
)

// initialPIDNamespace is the inode of the initial pid namespace, PROC_PID_INIT_INO.
const initialPIDNamespace = "pid:[4026531836]"

// CheckPIDNamespace returns ErrPIDNamespace unless process ids mean the same
// here and in the kernel.
func CheckPIDNamespace() error {
	name, err := os.Readlink("/proc/self/ns/pid")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel with one pid namespace only
	}
	if err != nil {
		return fmt.Errorf("read pid namespace: %w", err)
	}
	if name != initialPIDNamespace {
		return fmt.Errorf("check pid namespace %s: %w", name, ErrPIDNamespace)
	}
	return nil
}

// A Process is what selectors look at in one process. PID and Start together
// name it for good; a PID alone may be given to another one.
type Process struct {
	PID     uint32
	Parent  uint32
	Start   uint64            // clock ticks (USER_HZ) after boot
	Name    string            // as in /proc/PID/comm
	Zombie  bool              // has exited, is not yet waited for, holds no sockets
	Exe     Exe               // zero for kernel threads, and where we may not look
	UID     uint32            // the filesystem uid, which its new sockets get
	Cgroup2 string            // path below the root of the v2 hierarchy
	Cgroup1 map[string]string // v1 controller or "name=X" -> path below the root of its hierarchy
}

// ErrOutside says that a process's cgroup is none of this cgroup namespace.
var ErrOutside = errors.New("the process's cgroup is outside of this cgroup namespace")

// CgroupDir is the directory of the process's cgroup below a mount of the v2 hierarchy.
func (p Process) CgroupDir(mount string) (string, error) {
	if strings.HasPrefix(p.Cgroup2+"/", "/../") {
		return "", fmt.Errorf("%w: %s", ErrOutside, p.Cgroup2)
	}
	return filepath.Join(mount, p.Cgroup2), nil
}

// ReadProcess reads one process. It wraps ErrGone if there is none, as for the
// id of a process's second thread.
func ReadProcess(pid uint32) (Process, error) {
	p, err := new(reader).process(pid)
	if err != nil {
		return Process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return p, nil
}

// Processes reads all processes, in the order of their ids. Those that exit
// meanwhile are left out.
func Processes(ctx context.Context) ([]Process, error) {
	pids, err := processIDs()
	if err != nil {
		return nil, err
	}
	r := new(reader)
	list := make([]Process, 0, len(pids))
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read processes: %w", err)
		}
		p, err := r.process(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read process %d: %w", pid, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// processIDs lists /proc, in ascending order.
func processIDs() ([]uint32, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	pids := make([]uint32, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.ParseUint(name, 10, 32); err == nil {
			pids = append(pids, uint32(pid))
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// A reader reads processes and remembers what they have in common.
type reader struct{ devices devices }

func (r *reader) process(pid uint32) (Process, error) {
	dir, err := openProc(pid)
	if err != nil {
		return Process{}, err
	}
	defer dir.close()
	return r.open(pid, dir)
}

// open reads a process through its open directory. What permissions keep from
// us stays zero.
func (r *reader) open(pid uint32, dir procDir) (Process, error) {
	stat, err := dir.stat()
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: pid, Parent: stat.parent, Start: stat.start, Name: stat.name, Zombie: stat.exited()}
	status, err := dir.status()
	if err != nil {
		return Process{}, err
	}
	switch status.process {
	case pid:
	case 0:
		return Process{}, ErrGone
	default:
		return Process{}, fmt.Errorf("%w: it is a thread of process %d", ErrGone, status.process)
	}
	p.UID = status.uid
	cgroups, err := dir.read("cgroup")
	if err != nil {
		return Process{}, err
	}
	p.Cgroup2, p.Cgroup1 = parseCgroups(cgroups)
	p.Exe = r.devices.exe(dir)
	return p, nil
}

// openPidfd opens a pidfd of exactly this process, never of a later one with
// the same id. It wraps ErrGone. The caller closes it.
func (p Process) openPidfd() (int, error) {
	fd, err := unix.PidfdOpen(int(p.PID), 0)
	if err != nil {
		return -1, fmt.Errorf("open pidfd of process %d: %w", p.PID, goneAs(err))
	}
	// The start time read after the pidfd was made shows that the id still
	// named this process in between.
	if err := p.verify(); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("open pidfd of process %d: %w", p.PID, err)
	}
	return fd, nil
}

func (p Process) verify() error {
	dir, err := openProc(p.PID)
	if err != nil {
		return err
	}
	defer dir.close()
	stat, err := dir.stat()
	if err != nil {
		return err
	}
	if stat.start != p.Start {
		return ErrGone
	}
	return nil
}
