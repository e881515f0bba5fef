package workload

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func TestReadProcess(t *testing.T) {
	testutil.Needs(t, "root")
	v2 := testutil.Cgroup2(t)
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	sleep, err := filepath.EvalSymlinks(sleepPath(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(v2)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command(sleep)
	cmd.Args = []string{"sleep", "60"} // busybox looks at it
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 4711, Gid: 4711},
		UseCgroupFD: true, CgroupFD: int(dir.Fd()),
	}
	c := start(t, cmd)
	var p Process
	waitFor(t, func() bool { // exec lets go of Start before it sets the name
		if p, err = ReadProcess(c.pid()); err != nil {
			t.Fatal(err)
		}
		return p.Name == filepath.Base(sleep)
	})
	if p.PID != c.pid() || p.Parent != uint32(os.Getpid()) || p.Zombie {
		t.Errorf("process %+v is not the child", p)
	}
	if p.UID != 4711 {
		t.Errorf("uid %d, want 4711", p.UID)
	}
	if want := (Exe{identify(t, sleep), sleep}); p.Exe != want {
		t.Errorf("executable %+v, want %+v", p.Exe, want)
	}
	if want := strings.TrimPrefix(v2, h.V2); p.Cgroup2 != want {
		t.Errorf("v2 cgroup %q, want %q", p.Cgroup2, want)
	}
}

func TestReadProcessOfV1Cgroup(t *testing.T) {
	v1 := testutil.Cgroup1(t, "memory")
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, exec.Command("sleep", "60"))
	if err := os.WriteFile(v1+"/cgroup.procs", []byte(itoa(c.pid())), 0); err != nil {
		t.Fatal(err)
	}
	p, err := ReadProcess(c.pid())
	if want := strings.TrimPrefix(v1, h.V1["memory"]); err != nil || p.Cgroup1["memory"] != want {
		t.Errorf("v1 memory cgroup %q, %v; want %q", p.Cgroup1["memory"], err, want)
	}
}

func TestProcesses(t *testing.T) {
	c := start(t, exec.Command("sleep", "60"))
	list, err := Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(list, func(a, b Process) int { return int(a.PID) - int(b.PID) }) {
		t.Error("processes are not in the order of their ids")
	}
	i := slices.IndexFunc(list, func(p Process) bool { return p.PID == c.pid() })
	if i < 0 {
		t.Fatalf("process %d is not in the list", c.pid())
	}
	if list[i].Parent != uint32(os.Getpid()) {
		t.Errorf("process %+v is not the child", list[i])
	}
}

// The id of a thread is none of a process, although /proc has it.
func TestReadProcessOfThread(t *testing.T) {
	tid := otherThread(t)
	_, err := ReadProcess(tid)
	if want := fmt.Sprintf("read process %d: no such process: it is a thread of process %d", tid, os.Getpid()); !errors.Is(err, ErrGone) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestZombieAndGone(t *testing.T) {
	c := start(t, exec.Command("true"))
	var p Process
	deadline := time.Now().Add(5 * time.Second)
	for !p.Zombie && time.Now().Before(deadline) {
		var err error
		if p, err = ReadProcess(c.pid()); err != nil {
			t.Fatal(err)
		}
	}
	if !p.Zombie {
		t.Fatal("an exited child that nobody waited for is not a zombie")
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadProcess(c.pid()); !errors.Is(err, ErrGone) {
		t.Errorf("ReadProcess: %v, want ErrGone", err)
	}
	if _, err := p.openPidfd(); !errors.Is(err, ErrGone) {
		t.Errorf("openPidfd: %v, want ErrGone", err)
	}
}

// The same id with another start time is another process.
func TestPidfdKnowsReusedIDs(t *testing.T) {
	testutil.Needs(t, "pidfd")
	self, err := ReadProcess(uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := self.openPidfd()
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	self.Start--
	if fd, err := self.openPidfd(); !errors.Is(err, ErrGone) {
		unix.Close(fd)
		t.Errorf("openPidfd of an earlier process: %v, want ErrGone", err)
	}
}

func TestCheckPIDNamespace(t *testing.T) {
	testutil.Needs(t, "root", "initial pid namespace")
	if err := CheckPIDNamespace(); err != nil {
		t.Errorf("in the first: %v", err)
	}
	// The same test in a pid namespace of its own, with its /proc.
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestCheckPIDNamespaceInside$", "-test.v")
	cmd.Env = append(os.Environ(), "WEIR_INSIDE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "refused: check pid namespace") {
		t.Errorf("inside: %v\n%s", err, out)
	}
}

func TestCheckPIDNamespaceInside(t *testing.T) {
	if os.Getenv("WEIR_INSIDE") == "" {
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	err := CheckPIDNamespace()
	if !errors.Is(err, ErrPIDNamespace) {
		t.Fatalf("error %v, want ErrPIDNamespace", err)
	}
	t.Logf("refused: %v", err)
}

// Who was put into another cgroup namespace without being moved below its root has no directory
// there; a cgroup whose name begins so has.
func TestCgroupDir(t *testing.T) {
	for cgroup, want := range map[string]string{"/": "/mnt", "/a/b": "/mnt/a/b", "/..a": "/mnt/..a", "/..": "", "/../../a": ""} {
		dir, err := Process{Cgroup2: cgroup}.CgroupDir("/mnt")
		if dir != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %q, %v", cgroup, dir, err)
		}
	}
}
