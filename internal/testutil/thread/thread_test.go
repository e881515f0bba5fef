package thread

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Each run has a thread of its own, never the first, that ends with it.
func TestRun(t *testing.T) {
	want := errors.New("from fn")
	used := map[int]bool{}
	for range 50 {
		err := Run(func() error {
			used[unix.Gettid()] = true
			return want
		})
		if err != want {
			t.Fatalf("got %v", err)
		}
	}
	if used[os.Getpid()] {
		t.Error("the first thread was used")
	}
	deadline := time.Now().Add(5 * time.Second)
	for tid := range used {
		for exists(tid) {
			if time.Now().After(deadline) {
				t.Fatalf("thread %d is still there", tid)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func exists(tid int) bool {
	_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
	return err == nil
}
