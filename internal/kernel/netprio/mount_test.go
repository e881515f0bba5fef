package netprio

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMountPlace(t *testing.T) {
	for name, arm := range map[string]struct {
		prepare func() error
		want    func(Tree) string
	}{
		"tmpfs": {func() error { return nil }, func(Tree) string { return "/sys/fs/cgroup/net_prio" }},
		"read-only": {
			func() error { return unix.Mount("", cgroupRoot, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") },
			func(tree Tree) string { return tree.RunDir + "/net_prio" },
		},
		"v2": {
			func() error { return unix.Mount("weir-test", cgroupRoot, "cgroup2", 0, "") },
			func(tree Tree) string { return tree.RunDir + "/net_prio" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			if err := arm.prepare(); err != nil {
				t.Fatal(err)
			}
			apply(t, tree)
			want := arm.want(tree)
			if s := read(t, tree); s.Mount != want || !s.Mounted {
				t.Errorf("mounted at %q by us: %v; want %q", s.Mount, s.Mounted, want)
			}
			if err := tree.Remove(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(want); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the mount point is still there: %v", err)
			}
		})
	}
}

// A hierarchy that others mounted is used where it is, and stays. The groups
// are directly below its root here, as in the published recipe.
func TestForeignMount(t *testing.T) {
	ownMounts(t)
	dir := t.TempDir()
	if err := mountHierarchy(dir); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	}()
	tree := Tree{RunDir: t.TempDir()}
	apply(t, tree)
	if s := read(t, tree); s.Mount != dir || s.Mounted || s.Drift() != nil {
		t.Errorf("mount %q by us: %v, drift %v; want %q by others", s.Mount, s.Mounted, s.Drift(), dir)
	}
	if entries, err := readMap(dir + "/prio-13"); err != nil || entries["lo"] != 13 {
		t.Errorf("prio-13 below the root has %v, %v", entries, err)
	}
	if err := tree.Remove(); err != nil {
		t.Fatal(err)
	}
	if found, err := findMount(""); err != nil || found != dir {
		t.Errorf("mounted at %q, %v after remove; want %q left alone", found, err, dir)
	}
	if _, err := os.Stat(dir + "/prio-13"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("prio-13 is still there: %v", err)
	}
}

func TestParseMount(t *testing.T) {
	const twice = "35 31 0:32 / /a rw - cgroup cgroup rw,net_prio\n36 31 0:32 / /b rw - cgroup cgroup rw,net_prio\n"
	if first, known := parseMount(twice, "/x"), parseMount(twice, "/b"); first != "/a" || known != "/b" {
		t.Errorf("of two mounts %q is taken, and %q where /b was known", first, known)
	}
	for mountinfo, want := range map[string]string{
		"": "",
		"35 31 0:32 / /sys/fs/cgroup/net_cls,net_prio rw shared:9 - cgroup cgroup rw,net_cls,net_prio\n": "/sys/fs/cgroup/net_cls,net_prio",
		"35 31 0:32 /docker/x /mnt rw - cgroup cgroup rw,net_prio\n":                                     "",
		"35 31 0:32 / /a\\040b rw - cgroup cgroup rw,net_prio\n":                                         "/a b",
		"35 31 0:32 / /net_prio rw - tmpfs net_prio rw,net_prio\n":                                       "",
	} {
		if got := parseMount(mountinfo, ""); got != want {
			t.Errorf("parseMount(%q) = %q, want %q", mountinfo, got, want)
		}
	}
}

func TestHierarchy(t *testing.T) {
	for _, test := range []struct {
		cgroups, options string
		exists           bool
	}{
		{"", "net_prio", false},
		{"4:memory:/\n0::/\n", "net_prio", false},
		{"4:memory:/\n9:net_prio:/\n0::/\n", "net_prio", true},
		{"4:memory:/\n9:net_cls,net_prio:/x", "net_cls,net_prio", true},
	} {
		if options, exists := hierarchy(test.cgroups); options != test.options || exists != test.exists {
			t.Errorf("hierarchy(%q) = %q, %t, want %q, %t", test.cgroups, options, exists, test.options, test.exists)
		}
	}
}

func TestRefusal(t *testing.T) {
	const head = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
	for _, c := range []struct {
		errno   error
		cgroups string
		want    error
	}{
		{unix.EINVAL, head, ErrNoController},
		{unix.ENODEV, head + "net_prio\t0\t1\t1\n", ErrNoController},
		{unix.EINVAL, head + "net_prio\t0\t1\t0\n", ErrDisabled},
		{unix.EINVAL, head + "net_prio\t0\t1\t1\n", ErrDisabled},
		{unix.EBUSY, head + "net_prio\t9\t3\t1\n", ErrBusy},
		{unix.EPERM, head + "net_prio\t0\t1\t1\n", fs.ErrPermission},
		{unix.ENOMEM, head + "net_prio\t0\t1\t1\n", unix.ENOMEM},
	} {
		if got := refusal(c.errno, c.cgroups); !errors.Is(got, c.want) {
			t.Errorf("refusal(%v, %q) = %v, want %v", c.errno, c.cgroups, got, c.want)
		}
	}
}
