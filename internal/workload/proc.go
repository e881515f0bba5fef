package workload

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

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

// descriptors lists the file descriptors of a process.
func (d procDir) descriptors() ([]int, error) {
	fd, err := unix.Openat(int(d), "fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, goneAs(err)
	}
	file := os.NewFile(uintptr(fd), "fd")
	defer file.Close()
	names, err := file.Readdirnames(-1)
	if err != nil {
		return nil, goneAs(err)
	}
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

// goneAs maps what the kernel says of a process that has exited.
func goneAs(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	return err
}
