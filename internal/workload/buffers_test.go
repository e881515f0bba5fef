package workload

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// connected is a connection over loopback whose far end reads all.
func connected(t *testing.T) (fd int, c net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, far)
		far.Close()
		close(done)
	}()
	t.Cleanup(func() {
		c.Close()
		<-done
	})
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(n uintptr) { fd, err = unix.Dup(int(n)) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd, c
}

// size is that of a socket's buffer.
func (b Buffer) size(t *testing.T, fd int) uint32 {
	t.Helper()
	n, err := b.Size(fd)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBuffers(t *testing.T) {
	for _, b := range []Buffer{SendBuffer, ReceiveBuffer} {
		t.Run(b.name, func(t *testing.T) {
			fd, _ := connected(t)
			for _, size := range []uint32{32 << 10, 128 << 10, 16 << 10} {
				if err := b.SetSize(fd, size); err != nil {
					t.Fatal(err)
				}
				if is := b.size(t, fd); is != size {
					t.Errorf("%d bytes, want %d", is, size)
				}
			}
		})
	}
}

// TestBufferBeyondMost sets what only root may.
func TestBufferBeyondMost(t *testing.T) {
	testutil.Needs(t, "root")
	fd, _ := connected(t)
	const size = 64 << 20
	if err := SendBuffer.SetSize(fd, size); err != nil {
		t.Fatal(err)
	}
	if is := SendBuffer.size(t, fd); is != size {
		t.Errorf("%d bytes, want %d", is, size)
	}
}

// TestUnlock writes into a connection whose buffer was small, and is TCP's again.
func TestUnlock(t *testing.T) {
	fd, c := connected(t)
	const small = 16 << 10
	if err := errors.Join(SendBuffer.SetSize(fd, small), ReceiveBuffer.SetSize(fd, small)); err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		if _, err := c.Write(make([]byte, 4<<20)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if is := SendBuffer.size(t, fd); is != small {
		t.Errorf("%d bytes while it is locked, want %d", is, small)
	}
	err := SendBuffer.Unlock(fd)
	if errors.Is(err, ErrLocked) {
		return // before 5.14: it was said, and is as it was
	}
	if err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); SendBuffer.size(t, fd) <= 2*small; write() {
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("%d bytes after it was unlocked", SendBuffer.size(t, fd))
		}
	}
	locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soBufLock)
	if err != nil || locks != ReceiveBuffer.lock {
		t.Errorf("locks %d, %v; the other one is the application's", locks, err)
	}
}
