package workload

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func TestCgroupID(t *testing.T) {
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for name, hierarchy := range map[string]struct {
		mount string
		make  func(t testing.TB) string
	}{
		"v2": {h.V2, testutil.Cgroup2},
		"v1": {h.V1["memory"], func(t testing.TB) string { return testutil.Cgroup1(t, "memory") }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := hierarchy.make(t) + "/child (deleted)" // as the kernel would call a removed one
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			id, err := CgroupID(dir)
			if err != nil {
				t.Fatal(err)
			}
			var st unix.Stat_t
			if err := unix.Stat(dir, &st); err != nil {
				t.Fatal(err)
			}
			if id != st.Ino { // the same on 64-bit machines
				t.Errorf("id %d, want inode %d", id, st.Ino)
			}
			path, err := CgroupPath(hierarchy.mount, id)
			if want := strings.TrimPrefix(dir, hierarchy.mount); err != nil || path != want {
				t.Errorf("CgroupPath = %q, %v; want %q", path, err, want)
			}
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if path, err := CgroupPath(hierarchy.mount, id); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("CgroupPath of a removed cgroup = %q, %v; want ErrNotExist", path, err)
			}
			if _, err := CgroupID(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("CgroupID of a removed cgroup: %v, want ErrNotExist", err)
			}
		})
	}
}

func TestCgroupIDOfRoot(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	id, err := CgroupID(h.V2)
	if err != nil {
		t.Fatal(err)
	}
	link := t.TempDir() + "/link"
	if err := os.Symlink(h.V2, link); err != nil {
		t.Fatal(err)
	}
	for _, mount := range []string{h.V2, h.V2 + "/", link} {
		if path, err := CgroupPath(mount, id); err != nil || path != "/" {
			t.Errorf("CgroupPath(%s) = %q, %v; want /", mount, path, err)
		}
	}
}

func TestCgroupIDRefusesOthers(t *testing.T) {
	if id, err := CgroupID(t.TempDir()); err == nil {
		t.Errorf("an ordinary directory has cgroup id %d", id)
	}
}
