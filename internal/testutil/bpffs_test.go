package testutil

import (
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func TestBPFFS(t *testing.T) {
	var dir string
	t.Run("use", func(t *testing.T) {
		dir = BPFFS(t)
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := m.Pin(filepath.Join(dir, "m")); err != nil {
			t.Fatal(err)
		}
	})
	if dir != "" {
		if err := unix.Unmount(dir, 0); err == nil {
			t.Errorf("%s was still mounted after its test", dir)
		}
	}
}
