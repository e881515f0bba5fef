package testutil

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// startSuite notes in a file that a suite runs and returns a question: was it
// the only one from then till now? Suites share a lock on the file while they
// run, and each adds a byte at its start. Who gets the lock alone, and is still
// the last byte when it asks, was alone. end gives the lock back.
func startSuite(path string) (alone func() bool, end func() error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return func() bool { return false }, func() error { return err }
	}
	fd := int(f.Fd())
	first := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
	if first {
		first = f.Truncate(0) == nil
	}
	if _, err := f.Write([]byte{'.'}); err != nil {
		first = false
	}
	mine, err := f.Seek(0, io.SeekCurrent)
	if err != nil || unix.Flock(fd, unix.LOCK_SH) != nil {
		first = false
	}
	alone = func() bool {
		fi, err := f.Stat()
		return first && err == nil && fi.Size() == mine
	}
	return alone, f.Close
}
