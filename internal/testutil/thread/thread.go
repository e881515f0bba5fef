package thread

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Run runs fn on a thread that nobody uses after it, and returns its error. The
// first thread of the process is passed over: the runtime can not end it, and
// all of /proc/self would show the namespaces in which it stands.
func Run(fn func() error) (err error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			err = Run(fn)
			runtime.UnlockOSThread()
			return
		}
		err = fn() // still locked at its end: the runtime throws the thread away
	})
	wg.Wait()
	return err
}
