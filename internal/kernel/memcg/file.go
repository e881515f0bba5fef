package memcg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The files of the controller.
const (
	limitFile   = "memory.kmem.tcp.limit_in_bytes"
	usageFile   = "memory.kmem.tcp.usage_in_bytes"
	highestFile = "memory.kmem.tcp.max_usage_in_bytes"
	failedFile  = "memory.kmem.tcp.failcnt"
)

// Possible reports whether the memory hierarchy that is mounted at a directory knows limits
// of TCP memory.
func Possible(mount string) bool {
	_, err := os.Stat(filepath.Join(mount, limitFile))
	return mount != "" && err == nil
}

// readNumber reads a file of a cgroup.
func readNumber(dir, file string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// writeLimit changes the limit of a cgroup. One that has gone is fine.
func writeLimit(dir string, limit uint64) error {
	err := os.WriteFile(filepath.Join(dir, limitFile), strconv.AppendUint(nil, limit, 10), 0)
	if errors.Is(err, unix.EBUSY) {
		err = ErrInUse
	}
	if err == nil || absent(err) {
		return nil
	}
	return fmt.Errorf("limit TCP memory of %s: %w", dir, err)
}

// same reports whether the kernel holds a limit as another one: it counts in pages.
func same(a, b uint64) bool {
	page := uint64(os.Getpagesize())
	return a/page == b/page
}

// absent reports an error that says that a cgroup is not there.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }
