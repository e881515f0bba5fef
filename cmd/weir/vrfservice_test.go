package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// A box is a systemd of its own, in a virtual machine that is thrown away.
type box struct {
	t    *testing.T
	pid  string // to enter it by
	weir string
}

// newBox starts one, with a service that listens at port 4000.
func newBox(t *testing.T) *box {
	t.Helper()
	testutil.Needs(t, "vrf link", "sock_create", "systemd-box", "nsenter", "ss", "ip")
	b := &box{t: t, pid: strings.TrimSpace(testutil.Output(t, "systemd-box")), weir: filepath.Join(t.TempDir(), "weir")}
	t.Cleanup(func() {
		pid, _ := strconv.Atoi(b.pid)
		_ = unix.Kill(pid, unix.SIGKILL) // and all of its namespace with it
		b.until("its cgroups are gone", func() bool { return removeCgroups(t, "/sys/fs/cgroup/systemd-box") })
	})
	// Units name the program by its file, which tells a test binary what it is.
	self, err := os.Executable()
	if err == nil {
		err = os.Link(self, b.weir)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.unit("[Service]\nExecStart=/usr/bin/busybox nc -l -p 4000\n")
	return b
}

// removeCgroups removes cgroups from the lowest up, and reports whether none is left.
func removeCgroups(t *testing.T, root string) bool {
	t.Helper()
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir)
	}
	_, err := os.Stat(root)
	return os.IsNotExist(err)
}

// unit writes the service's file.
func (b *box) unit(text string) {
	b.t.Helper()
	path := "/etc/systemd/system/talk.service"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { os.Remove(path) })
}

// run runs a command inside, and returns what it says and its exit code.
func (b *box) run(name string, args ...string) (string, int) {
	b.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"--target", b.pid, "--mount", "--pid", "--cgroup", "--", name}, args...)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// must is run of what must not fail.
func (b *box) must(name string, args ...string) string {
	b.t.Helper()
	out, code := b.run(name, args...)
	if code != 0 {
		b.t.Fatalf("%s %v: exit code %d: %s", name, args, code, out)
	}
	return out
}

// is waits until the service is in a state.
func (b *box) is(state string) {
	b.t.Helper()
	b.until("the service is "+state, func() bool { out, _ := b.run("systemctl", "is-active", "talk"); return out == state })
}

// listens waits until the service listens in a VRF; "" for outside of any.
func (b *box) listens(vrf string) {
	b.t.Helper()
	want := "*:4000"
	if vrf != "" {
		want = "*%" + vrf + ":4000"
	}
	b.until("it listens at "+want, func() bool {
		fields := strings.Fields(testutil.Output(b.t, "ss", "-Htln", "sport", "4000"))
		return len(fields) > 3 && fields[3] == want
	})
}

func (b *box) until(what string, so func() bool) {
	b.t.Helper()
	for start := time.Now(); !so(); time.Sleep(100 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			out, _ := b.run("systemctl", "status", "talk", "weir-vrf@mgmt", "--no-pager")
			b.t.Fatalf("not so: %s\n%s", what, out)
		}
	}
}

// TestVRFServiceOfSystemd has a real systemd start a service in a VRF, by each way that it knows. Without
// the VRF the service is not started rather than outside of it, with the VRF it goes, and --undo has
// it as it was.
func TestVRFServiceOfSystemd(t *testing.T) {
	b := newBox(t)
	ip := func(line string) { t.Helper(); testutil.Output(t, "ip", strings.Fields(line)...) }
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "mgmt").Run() })
	const add = "link add mgmt up type vrf table 1000"

	ip(add)
	if out := b.must(b.weir, "vrf", "service", "talk", "--vrf", "mgmt", "--install"); !strings.Contains(out, "wrote /etc/systemd/system/talk.service.d/50-weir-vrf.conf") {
		t.Error(out)
	}
	b.must("systemctl", "start", "talk")
	b.listens("mgmt")
	ip("link del mgmt")
	b.is("inactive")
	b.must("systemctl", "start", "--no-block", "talk")
	b.until("its start waits", func() bool {
		out, _ := b.run("systemctl", "list-jobs", "--no-legend")
		return strings.Contains(out, "talk.service")
	})
	if out := testutil.Output(t, "ss", "-Htln", "sport", "4000"); out != "" {
		t.Errorf("without the VRF it listens: %s", out)
	}
	ip(add)
	b.listens("mgmt")
	b.must(b.weir, "vrf", "service", "talk", "--undo")
	if pins, _ := filepath.Glob("/sys/fs/bpf/weir-vrf"); pins != nil {
		t.Errorf("left is %q", pins)
	}
	b.listens("mgmt") // until it is restarted
	b.must("systemctl", "restart", "talk")
	b.listens("")
	b.must("systemctl", "stop", "talk")

	b.must(b.weir, "vrf", "service", "talk", "--vrf", "mgmt", "--install", "--by", "exec")
	b.must("systemctl", "start", "talk")
	b.listens("mgmt")
	b.must("systemctl", "stop", "talk")
	ip("link del mgmt")
	_, _ = b.run("systemctl", "start", "talk")
	b.is("failed")
	if out := testutil.Output(t, "ss", "-Htln", "sport", "4000"); out != "" {
		t.Errorf("without the VRF it listens: %s", out)
	}
	b.must(b.weir, "vrf", "service", "talk", "--undo")
	b.must("systemctl", "start", "talk")
	b.listens("")
	if left, _ := filepath.Glob("/etc/systemd/system/*weir*"); left != nil {
		t.Errorf("left is %q", left)
	}
}
