package lab

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// threadAffinities is on how many CPUs the threads of this process may run, all of them together; -1
// where they differ.
func threadAffinities() (int, error) {
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

func TestKeepOff(t *testing.T) {
	testutil.Needs(t, "2 CPUs")
	before, err := threadAffinities()
	if err != nil {
		t.Fatal(err)
	}
	back, err := keepOff(0, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	during, err := threadAffinities()
	if err != nil {
		t.Fatal(err)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	after, err := threadAffinities()
	if err != nil || during != 1 || after != before {
		t.Errorf("on %d CPUs, then %d, then %d, %v", before, during, after, err)
	}
	if back, err := keepOff(0, []int{0}); err != nil || back() != nil {
		t.Errorf("there is no other CPU: %v", err)
	}
}
