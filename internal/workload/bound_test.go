package workload

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// bound makes a socket in a namespace, binds it to a device, and has a process of that namespace hold
// it as well.
func bound(t *testing.T, ns *testutil.Namespace, family, kind, device int) int {
	t.Helper()
	var fd int
	var err error
	ns.Do(func() {
		if fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0); err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, device)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { file.Close() })
	holder := exec.Command("cat")
	holder.ExtraFiles = []*os.File{file}
	wait, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ns.Do(func() { err = holder.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		wait.Close()
		_ = holder.Wait()
	})
	return fd
}

// Sockets that are bound to a device that goes are let go of, whoever has them, and no others: neither
// those of another device nor those of another namespace, where the same number is another device.
func TestUnbind(t *testing.T) {
	testutil.Needs(t, "root", "veth link", "pidfd")
	here, there := testutil.NewNamespace(t), testutil.NewNamespace(t)
	near, far := testutil.Veth(t, here, there, testutil.VethOptions{})
	const lo = 1
	sockets := []struct {
		name     string
		fd, want int
	}{
		{"UDP", bound(t, here, unix.AF_INET, unix.SOCK_DGRAM, near.Index), 0},
		{"TCP over IPv6", bound(t, here, unix.AF_INET6, unix.SOCK_STREAM, near.Index), 0},
		{"of another device", bound(t, here, unix.AF_INET, unix.SOCK_DGRAM, lo), lo},
		{"of another namespace", bound(t, there, unix.AF_INET, unix.SOCK_DGRAM, far.Index), far.Index},
	}
	var st unix.Stat_t
	if err := unix.Stat(here.Path(), &st); err != nil {
		t.Fatal(err)
	}
	for range 2 { // once more is no error
		if err := Unbind(context.Background(), uint32(st.Ino), map[int]bool{near.Index: true, far.Index: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sockets {
		if got, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX); err != nil || got != s.want {
			t.Errorf("%s: bound to device %d, %v, want %d", s.name, got, err, s.want)
		}
	}
}
