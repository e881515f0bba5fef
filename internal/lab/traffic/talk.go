package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Talk is a TCP connection of this process with itself, over loopback, and one byte on
// its way: there, and back. Both ends are threads on one CPU, whose reads and writes the
// scheduler of Go does not see: it would take longer than what is to be measured.
type Talk struct {
	client, server int // descriptors, -1 once closed
}

// OpenTalk connects in the namespace, and with the cgroup, that the process has.
func OpenTalk() (*Talk, error) {
	t := &Talk{-1, -1}
	if err := t.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("talk over loopback: %w", err), t.Close())
	}
	return t, nil
}

func (t *Talk) open() (err error) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(listener)
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: netip.MustParseAddr("127.0.0.1").As4()}); err != nil {
		return err
	}
	if err := unix.Listen(listener, 1); err != nil {
		return err
	}
	address, err := unix.Getsockname(listener)
	if err != nil {
		return err
	}
	if t.client, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	// Over loopback the kernel has done all of it when this returns.
	if err := unix.Connect(t.client, address); err != nil {
		return err
	}
	if t.server, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC); err != nil {
		return err
	}
	for _, fd := range []int{t.client, t.server} {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return err
		}
	}
	return nil
}

// Close closes both ends.
func (t *Talk) Close() (err error) {
	for _, fd := range []*int{&t.client, &t.server} {
		if *fd >= 0 {
			err = errors.Join(err, unix.Close(*fd))
		}
		*fd = -1
	}
	return err
}

// Turns says how connections take turns to talk: each so many, of so long. In every other
// round they go in the opposite order, so that what drifts favours none.
type Turns struct {
	Rounds int
	Slice  time.Duration
	// Ordinary has them talk as any other task does, and not before all other work on their CPU: that work of the kernel's own
	// waits else, up to a second, and whatever waits for it.
	Ordinary bool
}

// order is which of n talks when.
func (t Turns) order(n int) (turns []int) {
	for round := range t.Rounds {
		for i := range n {
			if round%2 == 1 {
				i = n - 1 - i
			}
			turns = append(turns, i)
		}
	}
	return turns
}

// Spoken is what was said over a connection.
type Spoken struct {
	N       uint64        `json:"n"`       // transactions
	Elapsed time.Duration `json:"elapsed"` // that they took
	Rates   []float64     `json:"rates"`   // of each turn, transactions per second
}

// Rate is the transactions per second of all turns.
func (s Spoken) Rate() float64 { return float64(s.N) / s.Elapsed.Seconds() }

// add adds a turn.
func (s *Spoken) add(n uint64, elapsed time.Duration) {
	s.N += n
	s.Elapsed += elapsed
	s.Rates = append(s.Rates, float64(n)/elapsed.Seconds())
}

// What the byte says.
const (
	goOn byte = iota
	turnOver
)

const (
	// warmUp is how many transactions of a turn do not count: the caches are still full
	// of another connection.
	warmUp = 30
	// unlooked is how many pass between two looks at the clock.
	unlooked = 20
)

// Speak lets connections talk by turns, and returns what each did.
func Speak(talks []*Talk, turns Turns) ([]Spoken, error) {
	// The two threads sit on a processor of Go's each for as long as they talk.
	runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
	order := turns.order(len(talks))
	spoken := make([]Spoken, len(talks))
	answered, asked := make(chan error, 1), make(chan error, 1)
	onThread(answered, turns.Ordinary, func() error {
		for _, i := range order {
			if err := talks[i].answer(); err != nil {
				return fmt.Errorf("answer: %w", err)
			}
		}
		return nil
	})
	onThread(asked, turns.Ordinary, func() error {
		for _, i := range order {
			if err := talks[i].ask(turns.Slice, &spoken[i]); err != nil {
				return fmt.Errorf("ask: %w", err)
			}
		}
		return nil
	})
	err := <-asked
	if err != nil {
		for _, t := range talks { // nothing else wakes who waits for an answer
			_ = unix.Shutdown(t.client, unix.SHUT_RDWR)
		}
	}
	if err = errors.Join(err, <-answered); err != nil {
		return nil, fmt.Errorf("talk over loopback: %w", err)
	}
	return spoken, nil
}

// onThread runs fn on a thread of its own, which stays on the last CPU that this process
// may use and ends with it.
func onThread(done chan<- error, ordinary bool, fn func() error) {
	go func() {
		runtime.LockOSThread() // for good
		if err := pin(); err != nil {
			done <- err
			return
		}
		if !ordinary {
			// Before all other work on that CPU, where this is allowed: else that is measured.
			_ = realTime(0)
		}
		done <- fn()
	}()
}

func pin() error {
	all, err := cpus()
	if err != nil {
		return err
	}
	return stayOn(all[len(all)-1])
}

// ask has a turn on the client's side.
func (t *Talk) ask(slice time.Duration, s *Spoken) error {
	for range warmUp {
		if err := t.transact(goOn); err != nil {
			return err
		}
	}
	n, begin := uint64(0), time.Now()
	for time.Since(begin) < slice {
		for range unlooked {
			if err := t.transact(goOn); err != nil {
				return err
			}
		}
		n += unlooked
	}
	s.add(n, time.Since(begin))
	return t.transact(turnOver)
}

func (t *Talk) transact(b byte) error {
	if err := transfer(unix.SYS_WRITE, t.client, &b); err != nil {
		return err
	}
	return transfer(unix.SYS_READ, t.client, &b)
}

// answer has one on the server's.
func (t *Talk) answer() error {
	for {
		var b byte
		if err := transfer(unix.SYS_READ, t.server, &b); err != nil {
			return err
		}
		if err := transfer(unix.SYS_WRITE, t.server, &b); err != nil || b == turnOver {
			return err
		}
	}
}

// transfer reads or writes a byte, and waits for it in the kernel.
func transfer(call uintptr, fd int, b *byte) error {
	for {
		n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(b)), 1)
		switch {
		case errno == unix.EINTR: // a signal of Go's own
		case errno != 0:
			return errno
		case n == 0:
			return unix.ECONNRESET
		default:
			return nil
		}
	}
}
