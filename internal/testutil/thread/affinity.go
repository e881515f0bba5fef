package thread

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Affinities is on how many CPUs the threads of this process may run, all of them together; -1
// where they differ.
func Affinities() (int, error) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	count := 0
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			return 0, err
		}
		var set unix.CPUSet
		if unix.SchedGetaffinity(id, &set) != nil { // it has ended
			continue
		}
		if count != 0 && set.Count() != count {
			return -1, nil
		}
		count = set.Count()
	}
	return count, nil
}
