package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func TestEnsureBPFFS(t *testing.T) {
	testutil.Needs(t, "root")
	dir := t.TempDir()
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })

	if mounted, err := EnsureBPFFS(dir); err != nil || !mounted {
		t.Fatalf("first: mounted %v, %v", mounted, err)
	}
	if got := fstype(t, dir); got != "bpf" {
		t.Errorf("the mount table shows %q", got)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if mounted, err := EnsureBPFFS(dir); err != nil || mounted {
		t.Errorf("again: mounted %v, %v", mounted, err)
	}
	below := filepath.Join(dir, "weir")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if mounted, err := EnsureBPFFS(below); err != nil || mounted {
		t.Errorf("below one: mounted %v, %v", mounted, err)
	}
	if err := os.Remove(below); err != nil {
		t.Fatal(err)
	}

	for _, when := range []string{"mounted", "unmounted already"} {
		if err := UnmountBPFFS(dir); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	if got := fstype(t, dir); got != "" {
		t.Error("still mounted")
	}
}

func TestEnsureBPFFSNeedsADirectory(t *testing.T) {
	if mounted, err := EnsureBPFFS("/no/such/directory"); mounted || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("mounted %v, %v", mounted, err)
	}
}

func TestUnmountBPFFSKeepsPinsOfOthers(t *testing.T) {
	dir := testutil.BPFFS(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	pin := filepath.Join(dir, "theirs")
	if err := m.Pin(pin); err != nil {
		t.Fatal(err)
	}
	if err := UnmountBPFFS(dir); !errors.Is(err, ErrBPFFSInUse) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(pin); err != nil {
		t.Errorf("the pin is gone: %v", err)
	}
}

// A directory of somebody else's file system is not ours to unmount.
func TestUnmountBPFFSRefusesASubdirectory(t *testing.T) {
	dir := testutil.BPFFS(t)
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := UnmountBPFFS(below); !errors.Is(err, unix.EINVAL) {
		t.Errorf("got %v", err)
	}
	if got := fstype(t, dir); got != "bpf" {
		t.Errorf("the file system above is gone: %q", got)
	}
}

func TestUnmountBPFFSOfNothing(t *testing.T) {
	for _, path := range []string{"/no/such/directory", t.TempDir()} {
		if err := UnmountBPFFS(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// fstype is what the mount table says of a mount point, "" for none.
func fstype(t *testing.T, path string) string {
	t.Helper()
	for line := range strings.Lines(text(t, "/proc/self/mounts")) {
		if f := strings.Fields(line); f[1] == path {
			return f[2]
		}
	}
	return ""
}
