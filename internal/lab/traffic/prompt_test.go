package traffic

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// newPair is both ends of a connection over loopback.
func newPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	ns := testutil.NewNamespace(t)
	listener, err := listenTCP(ns.Path(), local(22), large)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if near, err = (Where{Netns: ns.Path(), To: local(22)}).dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	if far, err = listener.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// It reads what comes, waits for what does not come yet, and ends with the connection, at either end, and with its
// deadline. Its thread is before all others of no priority in real time.
func TestPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(near, far *net.TCPConn) error
		want error
	}{
		"the other end": {func(_, far *net.TCPConn) error { return far.Close() }, io.EOF},
		"its own end":   {func(near, _ *net.TCPConn) error { return near.Close() }, net.ErrClosed},
		"a deadline":    {func(near, _ *net.TCPConn) error { return near.SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := newPair(t)
			words, ended := make(chan string), make(chan error, 1)
			go func() {
				in, err := newPrompt(near)
				if attr, failed := unix.SchedGetAttr(0, 0); failed != nil || attr.Policy != unix.SCHED_FIFO && attr.Nice != -20 {
					t.Errorf("scheduled by %+v: %v", attr, failed)
				}
				for data := make([]byte, 100); err == nil; {
					var n int
					if n, err = in.Read(data); err == nil {
						words <- string(data[:n])
					}
				}
				ended <- err
			}()
			for _, word := range []string{"one", "two"} {
				if _, err := far.Write([]byte(word)); err != nil {
					t.Fatal(err)
				}
				if got := <-words; got != word {
					t.Errorf("read %q, want %q", got, word)
				}
				time.Sleep(2 * nap)
			}
			if err := c.end(near, far); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if !errors.Is(err, c.want) {
					t.Errorf("ended with %v, want %v", err, c.want)
				}
			case <-time.After(5 * time.Second):
				t.Error("it reads on")
			}
		})
	}
}
