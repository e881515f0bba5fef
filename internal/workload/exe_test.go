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

func TestExeID(t *testing.T) {
	testutil.Needs(t, "root")
	sleep := sleepPath(t)
	for _, dir := range []string{t.TempDir(), tmpfs(t)} {
		path := dir + "/weir-sleep"
		copyFile(t, sleep, path)
		c := start(t, exec.Command(path, "60"))
		want := mappedExe(t, c.pid(), path)
		if id, err := ExeID(path); err != nil || id != want {
			t.Errorf("ExeID(%s) = %+v, %v; the kernel has %+v", path, id, err, want)
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
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// tmpfs mounts a filesystem with an anonymous device number.
func tmpfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("weir-test", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// The executable of a process in another mount namespace is on a mount that
// ours does not know.
func TestExeIDInOtherMountNamespace(t *testing.T) {
	testutil.Needs(t, "root")
	dir := t.TempDir()
	copyFile(t, sleepPath(t), dir+"/weir-sleep")
	script := fmt.Sprintf("mount -t tmpfs none /mnt && cp %s/weir-sleep /mnt && echo ready && exec /mnt/weir-sleep 60", dir)
	c := start(t, exec.Command("unshare", "-m", "sh", "-c", script))
	if _, err := c.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { p, err := ReadProcess(c.pid()); return err == nil && p.Name == "weir-sleep" })
	p, err := ReadProcess(c.pid())
	if err != nil {
		t.Fatal(err)
	}
	if want := mappedExe(t, c.pid(), "/mnt/weir-sleep"); p.Exe.ID != want {
		t.Errorf("executable %+v, the kernel has %+v", p.Exe, want)
	}
}
