package workload

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

func itoa(n uint32) string { return fmt.Sprint(n) }

// mappedExe reads the identity of a process's executable from its memory map,
// where the kernel prints super_block->s_dev and i_ino themselves.
func mappedExe(t *testing.T, pid uint32, path string) plan.ExeID {
	t.Helper()
	maps, err := os.ReadFile("/proc/" + itoa(pid) + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[5] != path {
			continue
		}
		var major, minor uint32
		var inode uint64
		if _, err := fmt.Sscanf(f[3]+" "+f[4], "%x:%x %d", &major, &minor, &inode); err != nil {
			t.Fatal(err)
		}
		return plan.ExeID{Device: major<<20 | minor, Inode: inode}
	}
	t.Fatalf("%s is not mapped:\n%s", path, maps)
	return plan.ExeID{}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// identify returns the identity of a file by its path.
func identify(t *testing.T, path string) plan.ExeID {
	t.Helper()
	id, err := new(devices).id(unix.AT_FDCWD, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// lockedExe reads the identity of a file from the kernel's list of locks, which
// prints the same two numbers of the very inode that an open file has. On an
// overlay the memory map shows those of the layer instead.
func lockedExe(t *testing.T, path string) plan.ExeID {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}); err != nil {
		t.Fatal(err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line) // 1: POSIX  ADVISORY  READ 730 00:2a:4711 0 EOF
		if len(f) < 6 || f[1] != "POSIX" || f[4] != fmt.Sprint(os.Getpid()) {
			continue
		}
		var major, minor uint32
		var inode uint64
		if _, err := fmt.Sscanf(strings.ReplaceAll(f[5], ":", " "), "%x %x %d", &major, &minor, &inode); err != nil {
			t.Fatal(err)
		}
		return plan.ExeID{Device: major<<20 | minor, Inode: inode}
	}
	t.Fatalf("the lock on %s is not in the list:\n%s", path, locks)
	return plan.ExeID{}
}

func TestExe(t *testing.T) {
	testutil.Needs(t, "root")
	for name, dir := range map[string]func(t *testing.T) string{
		"disk":    func(t *testing.T) string { return t.TempDir() },
		"tmpfs":   tmpfs, // its device number is anonymous
		"overlay": overlay,
	} {
		t.Run(name, func(t *testing.T) {
			path := dir(t) + "/sleep"
			copyFile(t, sleepPath(t), path)
			c := start(t, exec.Command(path, "60"))
			defer c.end()
			want := lockedExe(t, path)
			if mapped := mappedExe(t, c.pid(), path); name != "overlay" && mapped != want {
				t.Errorf("the memory map shows %+v, the lock %+v", mapped, want)
			}
			if id := identify(t, path); id != want {
				t.Errorf("%s is %+v; the kernel has %+v", path, id, want)
			}
			if p, err := ReadProcess(c.pid()); err != nil || p.Exe != (Exe{want, path}) {
				t.Errorf("process has %+v, %v; want %+v", p.Exe, err, want)
			}
			// An upgraded package leaves the old file running and deleted.
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if p, err := ReadProcess(c.pid()); err != nil || p.Exe != (Exe{want, path}) {
				t.Errorf("process with a deleted executable has %+v, %v", p.Exe, err)
			}
		})
	}
}

// On an overlay the file of a lower layer has another device than the overlay,
// as far as stat tells.
func TestExeOfLowerLayer(t *testing.T) {
	testutil.Needs(t, "root", "overlay")
	lower := tmpfs(t)
	copyFile(t, sleepPath(t), lower+"/sleep")
	path := overlayOf(t, lower) + "/sleep"
	c := start(t, exec.Command(path, "60"))
	defer c.end()
	want := lockedExe(t, path)
	if below := identify(t, lower+"/sleep"); below == want {
		t.Errorf("%+v is the overlay's file and the layer's", want)
	}
	if id := identify(t, path); id != want {
		t.Errorf("%s is %+v; the kernel has %+v", path, id, want)
	}
	if p, err := ReadProcess(c.pid()); err != nil || p.Exe != (Exe{want, path}) {
		t.Errorf("process has %+v, %v; want %+v", p.Exe, err, want)
	}
}

func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mountOn(t, dir, "tmpfs", "size=4m")
	return dir
}

func overlay(t *testing.T) string {
	t.Helper()
	testutil.Needs(t, "overlay")
	return overlayOf(t, t.TempDir())
}

// overlayOf mounts an overlay of which one layer is a tmpfs, above another.
func overlayOf(t *testing.T, lower string) string {
	t.Helper()
	upper, dir := tmpfs(t), t.TempDir()
	for _, d := range []string{upper + "/up", upper + "/work"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mountOn(t, dir, "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s/up,workdir=%s/work", lower, upper, upper))
	return dir
}

func mountOn(t *testing.T, dir, kind, options string) {
	t.Helper()
	if err := unix.Mount("weir-test", dir, kind, 0, options); err != nil {
		t.Fatalf("mount %s: %v", kind, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// The executable of a process in another mount namespace is on a mount that
// ours does not know.
func TestExeIDInOtherMountNamespace(t *testing.T) {
	testutil.Needs(t, "root")
	dir, point := t.TempDir(), t.TempDir()
	copyFile(t, sleepPath(t), dir+"/sleep")
	script := fmt.Sprintf("mount -t tmpfs none %s && cp %s/sleep %[1]s && echo ready && exec %[1]s/sleep 60", point, dir)
	cmd := exec.Command("unshare", "-m", "sh", "-c", script)
	cmd.Stderr = os.Stderr
	c := start(t, cmd)
	if _, err := c.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { p, err := ReadProcess(c.pid()); return err == nil && p.Name == "sleep" })
	p, err := ReadProcess(c.pid())
	if err != nil {
		t.Fatal(err)
	}
	if want := mappedExe(t, c.pid(), point+"/sleep"); p.Exe.ID != want {
		t.Errorf("executable %+v, the kernel has %+v", p.Exe, want)
	}
}
