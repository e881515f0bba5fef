package testutil

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BPFFS mounts a BPF file system of its own in a temporary directory and
// unmounts it at the end of the test, which drops every pin in it.
func BPFFS(t testing.TB) string {
	t.Helper()
	Needs(t, "root")
	dir := t.TempDir()
	if err := unix.Mount("weir-test", dir, "bpf", 0, "mode=0700"); err != nil {
		t.Fatalf("mount bpf file system: %v", err)
	}
	t.Cleanup(func() { unmount(t, dir) })
	return dir
}

// unmount waits a second for who has a file there: a child that a test beside this one has just forked has what was open here until
// it has begun its program, and syscall.ForkLock does not wait for that.
func unmount(t testing.TB, dir string) {
	err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
	for end := time.Now().Add(time.Second); errors.Is(err, unix.EBUSY) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		err = unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
	}
	if err != nil {
		t.Errorf("unmount %s: %v", dir, err)
		// A busy mount would otherwise stand in the way of TempDir's removal.
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
}
