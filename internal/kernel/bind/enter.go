package bind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// attempts are how often a cgroup is made anew that somebody removed before this process was in it.
const attempts = 5

// Make makes a cgroup and those above it that are missing.
func Make(cgroup string) error {
	if err := os.MkdirAll(cgroup, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	return nil
}

// Enter moves this process into a cgroup, where its new sockets are bound to a device; with
// index 0 it only moves. Where this process may not put the program there but somebody has, and
// may enter, that is enough: whether it is so is asked of a new socket, not of the cgroup.
func Enter(cgroup string, index int) error {
	var err error
	for range attempts {
		if err = enter(cgroup, index); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	return err
}

func enter(cgroup string, index int) error {
	if err := Make(cgroup); err != nil {
		return err
	}
	var attached error
	if index != 0 {
		if attached = Attach(cgroup, index); attached != nil && !errors.Is(attached, fs.ErrPermission) {
			return attached
		}
	}
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("enter cgroup: %w", err)
	}
	got, err := New()
	switch {
	case err != nil:
		return err
	case got == index:
		return nil
	case attached != nil:
		return attached
	}
	return fmt.Errorf("a program of a cgroup above %s binds sockets to device %d: %w", cgroup, got, ErrOutvoted)
}

// ErrOutvoted says that another program has the last word on a cgroup's sockets.
var ErrOutvoted = errors.New("sockets are bound by another program")
