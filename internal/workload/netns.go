package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Namespaces returns a path of each network namespace that has a process, once.
// Processes that exit meanwhile are passed over, and those that we may not look at.
func Namespaces() ([]string, error) {
	pids, err := processIDs()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var paths []string
	for _, pid := range pids {
		path := fmt.Sprintf("/proc/%d/ns/net", pid)
		name, err := os.Readlink(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // gone, or a zombie
		case err != nil:
			return nil, fmt.Errorf("read network namespace of process %d: %w", pid, err)
		case !known[name]:
			known[name] = true
			paths = append(paths, path)
		}
	}
	return paths, nil
}
