package workload

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
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
43 31 0:39 / /sys/fs/cgroup/pids rw - cgroup  rw,seclabel,context=a:b:c,pids
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
		"pids":         "/sys/fs/cgroup/pids",
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

// magic is the kind of the filesystem that a path leads to.
func magic(t *testing.T, path string) int64 {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Type)
}

// What is mounted over a hierarchy hides it, and one that is mounted elsewhere,
// be it without a source, counts instead.
func TestFindHierarchiesThatAreHidden(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	if os.Getenv("WEIR_INSIDE") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "WEIR_INSIDE=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "hid it") {
			t.Errorf("inside: %v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	before, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for dir, kind := range map[string]string{before.V2: "tmpfs", elsewhere: "cgroup2"} {
		if err := unix.Mount("", dir, kind, 0, ""); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(dir, 0)
	}
	after, err := FindHierarchies()
	if err != nil || after.V2 == before.V2 || magic(t, after.V2) != unix.CGROUP2_SUPER_MAGIC {
		t.Fatalf("the v2 hierarchy is at %q, %v", after.V2, err)
	}
	t.Log("hid it")
}

func TestFindHierarchies(t *testing.T) {
	testutil.Needs(t, "cgroup2")
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	if got := magic(t, h.V2); got != unix.CGROUP2_SUPER_MAGIC {
		t.Errorf("%s has magic %#x, want that of cgroup2", h.V2, got)
	}
	for controller, point := range h.V1 {
		if got := magic(t, point); got != unix.CGROUP_SUPER_MAGIC {
			t.Errorf("%s at %s has magic %#x, want that of cgroup v1", controller, point, got)
		}
	}
}
