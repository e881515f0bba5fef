package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/testutil"
)

const hybridMounts = `23 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
31 23 0:28 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
35 31 0:32 / /sys/fs/cgroup/net_cls,net_prio rw shared:9 master:2 - cgroup cgroup rw,net_cls,net_prio
36 31 0:33 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd
40 31 0:37 /docker/abc /mnt/bind rw - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
42 31 0:38 / /mnt/with\040blank\134 rw - cgroup2 cgroup2 rw
50 23 0:50 /@home /home rw - btrfs /dev/vda3 rw,subvol=/@home
`

func TestHierarchies(t *testing.T) {
	mounts, err := parseMountinfo(strings.NewReader(hybridMounts))
	if err != nil {
		t.Fatal(err)
	}
	want := Hierarchies{V2: "/sys/fs/cgroup/unified", V1: map[string]string{
		"net_cls":      "/sys/fs/cgroup/net_cls,net_prio",
		"net_prio":     "/sys/fs/cgroup/net_cls,net_prio",
		"name=systemd": "/sys/fs/cgroup/systemd",
	}}
	if diff := cmp.Diff(want, hierarchies(mounts)); diff != "" {
		t.Errorf("hierarchies (-want +got):\n%s", diff)
	}
	if got := mounts[6].point; got != `/mnt/with blank\` {
		t.Errorf("mount point %q", got)
	}
	if got := mounts[0].device; got != 254<<20|1 {
		t.Errorf("device %#x", got)
	}
	if _, ok := want.Mount("memory"); ok {
		t.Error("a bind mount of a subtree was taken for the memory hierarchy")
	}
}

func TestParseMountinfoRefuses(t *testing.T) {
	for _, line := range []string{"", "31 23 0:28 / /sys rw", "x 23 0:28 / /sys rw - tmpfs tmpfs rw", "31 23 28 / /sys rw - tmpfs tmpfs rw"} {
		if _, err := parseMountinfo(strings.NewReader(line + "\n")); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

func TestUnescape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.String().Draw(t, "path")
		var escaped strings.Builder
		for _, b := range []byte(path) {
			if strings.IndexByte(" \t\n\\", b) >= 0 {
				fmt.Fprintf(&escaped, `\%03o`, b)
			} else {
				escaped.WriteByte(b)
			}
		}
		if got := unescape(escaped.String()); got != path {
			t.Fatalf("unescape(%q) = %q, want %q", escaped.String(), got, path)
		}
	})
}

func TestFindHierarchies(t *testing.T) {
	testutil.Needs(t, "cgroup2")
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	magic := func(path string) int64 {
		var fs unix.Statfs_t
		if err := unix.Statfs(path, &fs); err != nil {
			t.Fatal(err)
		}
		return int64(fs.Type)
	}
	if got := magic(h.V2); got != unix.CGROUP2_SUPER_MAGIC {
		t.Errorf("%s has magic %#x, want that of cgroup2", h.V2, got)
	}
	for controller, point := range h.V1 {
		if got := magic(point); got != unix.CGROUP_SUPER_MAGIC {
			t.Errorf("%s at %s has magic %#x, want that of cgroup v1", controller, point, got)
		}
	}
}
