package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Terminal is one that a test sits at: it types, sees what is written, and knows the
// modes.
type Terminal struct {
	Far  *os.File // what the test reads and types
	Path string   // of the near side, for who runs there

	near    *os.File // as long as nobody has it open the far side reads EIO
	mu      sync.Mutex
	written strings.Builder
	seen    int // of written, by Until
}

// NewTerminal makes a terminal that goes away with the test.
func NewTerminal(t testing.TB, columns, rows int) *Terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &Terminal{Far: os.NewFile(uintptr(fd), "/dev/ptmx")}
	t.Cleanup(func() { term.Far.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	term.Path = fmt.Sprintf("/dev/pts/%d", number)
	if term.near, err = os.OpenFile(term.Path, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.near.Close() })
	term.Resize(t, columns, rows)
	return term
}

// Start starts a program at the terminal, as the leader of a session of its own, and reads
// what is written from then on. The function that it returns waits for the program's end
// and returns its exit code, or 128 and the signal that ended it.
func (term *Terminal) Start(t testing.TB, cmd *exec.Cmd) (wait func() int) {
	t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.near, term.near, term.near
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	// What its starter listens to is as usual in a program; what that ignores would be ignored.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP)
	err := cmd.Start()
	signal.Stop(caught)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		term.read()
	}()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		<-ended
		term.near.Close()
		<-over
	})
	return func() int {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("it has not ended:\n%q", term.Written())
		}
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
			return 128 + int(s.Signal())
		}
		return cmd.ProcessState.ExitCode()
	}
}

func (term *Terminal) read() {
	b := make([]byte, 4096)
	for {
		n, err := term.Far.Read(b)
		term.mu.Lock()
		term.written.Write(b[:n])
		term.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Heard is what was written to a terminal where nothing was started, or is within a time.
func (term *Terminal) Heard(within time.Duration) string {
	wait := []unix.PollFd{{Fd: int32(term.Far.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(wait, int(within.Milliseconds())); n == 0 || err != nil {
		return ""
	}
	b := make([]byte, 4096)
	n, _ := term.Far.Read(b)
	return string(b[:n])
}

// Written is all that was written to the terminal.
func (term *Terminal) Written() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.written.String()
}

// Until waits until a text is written after what an earlier Until has found, and returns what
// was written up to it.
func (term *Terminal) Until(t testing.TB, text string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		all := term.Written()
		if i := strings.Index(all[term.seen:], text); i >= 0 {
			found := all[term.seen : term.seen+i]
			term.seen += i + len(text)
			return found
		}
	}
	t.Fatalf("no %q is written after %d bytes of %q", text, term.seen, term.Written())
	return ""
}

// Type types keys.
func (term *Terminal) Type(t testing.TB, keys string) {
	t.Helper()
	if _, err := term.Far.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// Resize changes the size, and tells who runs there.
func (term *Terminal) Resize(t testing.TB, columns, rows int) {
	t.Helper()
	size := unix.Winsize{Col: uint16(columns), Row: uint16(rows)}
	if err := unix.IoctlSetWinsize(int(term.near.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		t.Fatal(err)
	}
}

// Modes are the terminal's modes now.
func (term *Terminal) Modes(t testing.TB) unix.Termios {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(term.near.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *modes
}
