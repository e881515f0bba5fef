package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepOff keeps this process off a CPU, if there is another one, with all threads that it makes and all
// processes that it starts from now on. What it returns lets them back.
func KeepOff(cpu int) (back func() error, err error) {
	var old unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &old); err != nil {
		return nil, fmt.Errorf("read affinity: %w", err)
	}
	others := old
	others.Clear(cpu)
	if others.Count() == 0 {
		return func() error { return nil }, nil
	}
	return func() error { return eachThread(&old) }, eachThread(&others)
}

// eachThread sets the affinity of all threads of this process. Threads that are made meanwhile have that of
// their makers, so it looks until there are no new ones.
func eachThread(set *unix.CPUSet) error {
	done := map[int]bool{}
	for {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list threads: %w", err)
		}
		fresh := 0
		for _, e := range entries {
			id, err := strconv.Atoi(e.Name())
			if err != nil || done[id] {
				continue
			}
			done[id] = true
			fresh++
			err = unix.SchedSetaffinity(id, set)
			if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("set affinity of thread %d: %w", id, err)
			}
		}
		if fresh == 0 {
			return nil
		}
	}
}
