package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A text reaches every terminal and nothing that is none, control characters
// do not, and a terminal that nobody reads is not waited for.
func TestWall(t *testing.T) {
	dir := t.TempDir()
	first, second := pty(t, dir, "0"), pty(t, dir, "1")
	full := filepath.Join(dir, "2")
	if err := unix.Mkfifo(full, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "3"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if reached := Wall(dir, "rolled back: \x1b[2Jall\nsecond line"); reached != 2 {
		t.Errorf("%d terminals were reached, want 2", reached)
	}
	for i, far := range []*os.File{first, second} {
		b := make([]byte, 1024)
		_ = far.SetReadDeadline(time.Now().Add(time.Second))
		n, err := far.Read(b)
		// The terminal's own line discipline makes \r\r\n of our \r\n.
		text := strings.ReplaceAll(string(b[:n]), "\r\r\n", "\r\n")
		if want := "\r\n\arolled back: [2Jall\r\nsecond line\r\n"; err != nil || text != want {
			t.Errorf("terminal %d shows %q, %v; want %q", i, text, err, want)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "3")); len(text) > 0 {
		t.Errorf("a file was written to: %q", text)
	}
	if Wall(filepath.Join(dir, "absent"), "x") != 0 {
		t.Error("a terminal was reached where there is none")
	}
}

func pty(t *testing.T, dir, name string) *os.File {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	far := os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { far.Close() })
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	near := fmt.Sprintf("/dev/pts/%d", number)
	keep, err := os.OpenFile(near, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keep.Close() })
	if err := os.Symlink(near, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	return far
}

// The log hears a line in the form of syslog, over a socket of either kind.
func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := Log(path, "weir", "rolled back\nnow"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1024)
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	n, err := c.Read(b)
	if text := string(b[:n]); err != nil || !strings.HasPrefix(text, "<28>") || !strings.HasSuffix(text, fmt.Sprintf(" weir[%d]: rolled back; now", os.Getpid())) {
		t.Errorf("the log heard %q, %v", text, err)
	}
	stream := filepath.Join(t.TempDir(), "log")
	l, err := net.Listen("unix", stream)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Log(stream, "weir", "x"); err != nil {
		t.Fatalf("a log on a stream: %v", err)
	}
	heard, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	if text, err := io.ReadAll(heard); err != nil || !strings.HasSuffix(string(text), ": x\n") {
		t.Errorf("a log on a stream heard %q, %v", text, err)
	}
	if err := Log(filepath.Join(t.TempDir(), "absent"), "weir", "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
}
