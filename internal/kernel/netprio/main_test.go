package netprio

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

const senderVariable = "WEIR_NETPRIO_SENDER"

// Tests leave their threads in mount namespaces of their own. The first thread of
// the process, which the runtime can not end, must not be among them: the main
// goroutine, which only waits for the tests, keeps it. After init it may be on
// another.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	if target := os.Getenv(senderVariable); target != "" {
		if err := sendOnCommand(target); err != nil {
			fmt.Println(err)
		}
		return
	}
	testutil.Leaks(m)
}

// ownMounts moves the test into a mount namespace of its own, which ends with
// the test, in which net_prio is not mounted and /sys/fs/cgroup is a tmpfs.
func ownMounts(t *testing.T) {
	t.Helper()
	testutil.Needs(t, "root", "net_prio", "initial network namespace")
	runtime.LockOSThread() // for good: the thread ends with the test
	if unix.Gettid() == unix.Getpid() {
		t.Fatal("the test runs on the first thread")
	}
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for {
		mount, err := findMount("")
		if err != nil {
			t.Fatal(err)
		}
		if mount == "" {
			break
		}
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("weir-test", cgroupRoot, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
}

// newTree is a tree of the test's own, applied, and removed at its end.
func newTree(t *testing.T) Tree {
	t.Helper()
	ownMounts(t)
	tree := Tree{Base: fmt.Sprintf("/weir-test-%d", os.Getpid()), RunDir: t.TempDir() + "/run"}
	t.Cleanup(func() {
		if err := tree.Remove(); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	return tree
}

func apply(t *testing.T, tree Tree) {
	t.Helper()
	if err := tree.Apply(nil); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, tree Tree) State {
	t.Helper()
	s, err := tree.Read()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// groupOf is the group of a process as the kernel shows it.
func groupOf(t *testing.T, pid uint32) string {
	t.Helper()
	p, err := readProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p.group
}

// A sender is a process with a UDP socket that was open before anything
// happened to the process. It does what it is told, line by line.
type sender struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *bufio.Writer
	out *bufio.Reader
}

func startSender(t *testing.T, target string) *sender {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), senderVariable+"="+target)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	s := &sender{t, cmd, bufio.NewWriter(stdin), bufio.NewReader(stdout)}
	s.await()
	return s
}

func (s *sender) pid() uint32 { return uint32(s.cmd.Process.Pid) }

// end kills the sender and waits for it, so that its group can be removed.
func (s *sender) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *sender) await() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || word != "ok" {
		s.t.Fatalf("sender says %q, %v", line, err)
	}
	return rest
}

// do has the sender do something and waits until it is done.
func (s *sender) do(command string) string {
	s.t.Helper()
	if _, err := s.in.WriteString(command + "\n"); err != nil {
		s.t.Fatal(err)
	}
	if err := s.in.Flush(); err != nil {
		s.t.Fatal(err)
	}
	return s.await()
}
