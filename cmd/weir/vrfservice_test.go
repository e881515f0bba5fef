package main

import (
	"errors"
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

// newBox starts one.
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

// write writes a file for as long as the test runs; what was there comes back.
func (b *box) write(path, text string, mode fs.FileMode) {
	b.t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		b.t.Cleanup(func() { os.Remove(path) })
	} else {
		b.t.Cleanup(func() { _ = os.WriteFile(path, before, mode) })
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		b.t.Fatal(err)
	}
}

// run runs a command inside, and returns what it says and its exit code.
func (b *box) run(name string, args ...string) (string, int) {
	b.t.Helper()
	// From a cgroup of its own, since ours is none of its namespace's.
	enter := []string{"--target", b.pid, "--mount", "--pid", "--cgroup", "--", "sh", "-c", `mkdir -p /sys/fs/cgroup/run && echo $$ >/sys/fs/cgroup/run/cgroup.procs && exec "$0" "$@"`, name}
	cmd := exec.Command("nsenter", append(enter, args...)...)
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

// is waits until a unit is in a state.
func (b *box) is(unit, state string) {
	b.t.Helper()
	b.until(unit+" is "+state, func() bool { out, _ := b.run("systemctl", "is-active", unit); return out == state })
}

// listens waits until all that listens at a port does so in a VRF; "" for outside of any.
func (b *box) listens(port, vrf string) {
	b.t.Helper()
	in := ":" + port
	if vrf != "" {
		in = "%" + vrf + in
	}
	b.until("what listens ends in "+in, func() bool {
		sockets := strings.Split(strings.TrimSpace(testutil.Output(b.t, "ss", "-Htuln", "sport", port)), "\n")
		return !slices.ContainsFunc(sockets, func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) < 5 || !strings.HasSuffix(fields[4], in) || vrf == "" && strings.Contains(fields[4], "%")
		})
	})
}

// silent holds that nothing listens at a port.
func (b *box) silent(port string) {
	b.t.Helper()
	if out := testutil.Output(b.t, "ss", "-Htuln", "sport", port); out != "" {
		b.t.Errorf("without the VRF it listens: %s", out)
	}
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
	b.write("/etc/systemd/system/talk.service", "[Service]\nExecStart=/usr/bin/busybox nc -l -p 4000\n", 0o644)
	ip := func(line string) { t.Helper(); testutil.Output(t, "ip", strings.Fields(line)...) }
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "mgmt").Run() })
	const add = "link add mgmt up type vrf table 1000"

	ip(add)
	if out := b.must(b.weir, "vrf", "service", "talk", "--vrf", "mgmt", "--install"); !strings.Contains(out, "wrote /etc/systemd/system/talk.service.d/50-weir-vrf.conf") {
		t.Error(out)
	}
	b.must("systemctl", "start", "talk")
	b.listens("4000", "mgmt")
	ip("link del mgmt")
	b.is("talk", "inactive")
	b.must("systemctl", "start", "--no-block", "talk")
	b.until("its start waits", func() bool {
		out, _ := b.run("systemctl", "list-jobs", "--no-legend")
		return strings.Contains(out, "talk.service")
	})
	b.silent("4000")
	ip(add)
	b.listens("4000", "mgmt")
	b.must(b.weir, "vrf", "service", "talk", "--undo")
	if pins, _ := filepath.Glob("/sys/fs/bpf/weir-vrf"); pins != nil {
		t.Errorf("left is %q", pins)
	}
	b.listens("4000", "mgmt") // until it is restarted
	b.must("systemctl", "restart", "talk")
	b.listens("4000", "")
	b.must("systemctl", "stop", "talk")

	b.must(b.weir, "vrf", "service", "talk", "--vrf", "mgmt", "--install", "--by", "exec")
	b.must("systemctl", "start", "talk")
	b.listens("4000", "mgmt")
	b.must("systemctl", "stop", "talk")
	ip("link del mgmt")
	_, _ = b.run("systemctl", "start", "talk")
	b.is("talk", "failed")
	b.silent("4000")
	b.must(b.weir, "vrf", "service", "talk", "--undo")
	b.must("systemctl", "start", "talk")
	b.listens("4000", "")
	if left, _ := filepath.Glob("/etc/systemd/system/*weir*"); left != nil {
		t.Errorf("left is %q", left)
	}
}

// TestVRFServiceOfDebian has that systemd start what a management network is for, by the units that Debian has of
// it, sandboxes included: a real sshd and chronyd, and apt's timer, of which the command is ours.
func TestVRFServiceOfDebian(t *testing.T) {
	testutil.Needs(t, "sshd", "ssh", "ssh-keygen", "chronyd")
	b := newBox(t)
	testutil.Output(t, "ip", "link", "set", "lo", "up")
	testutil.Output(t, "ip", "link", "add", "mgmt", "up", "type", "vrf", "table", "1000")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "mgmt").Run() })
	testutil.Output(t, "ip", "link", "add", "eth7", "up", "master", "mgmt", "type", "dummy")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "eth7").Run() })
	testutil.Output(t, "ip", "addr", "add", "10.9.9.1/24", "dev", "eth7")

	b.sshd()
	b.chronyd()
	b.apt()
	if left, _ := filepath.Glob("/etc/systemd/system/*/*weir*"); left != nil {
		t.Errorf("left is %q", left)
	}
}

// sshd is reached in the VRF alone, by either way, and who logs in stays in it.
func (b *box) sshd() {
	b.t.Helper()
	server, client := testutil.SSH(b.t, "0.0.0.0")
	config, err := os.ReadFile(server[len(server)-1])
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("/etc/ssh/sshd_config", string(config), 0o600)
	login := func(address string) []string {
		return slices.Concat([]string{testutil.Tool(b.t, "ssh")}, client, []string{"root@" + address, b.weir, "vrf", "identify"})
	}
	for _, way := range []string{"BPFProgram", "exec"} {
		b.must(b.weir, "vrf", "service", "sshd", "--vrf", "mgmt", "--install", "--by", way)
		b.must("systemctl", "start", "ssh")
		b.listens("22", "mgmt")
		if out := b.must(b.weir, append([]string{"vrf", "exec", "mgmt", "--"}, login("10.9.9.1")...)...); out != "mgmt" {
			b.t.Errorf("%s: who logs in is in %q", way, out)
		}
		if out, code := b.run("env", login("127.0.0.1")...); code == 0 {
			b.t.Errorf("%s: sshd is reached from outside of the VRF: %s", way, out)
		}
		b.must("systemctl", "stop", "ssh")
		b.must(b.weir, "vrf", "service", "sshd", "--undo")
	}
	b.must("systemctl", "start", "ssh")
	b.listens("22", "")
	if out := b.must("env", login("127.0.0.1")...); out != "" {
		b.t.Errorf("after --undo who logs in is in %q", out)
	}
	b.must("systemctl", "stop", "ssh")
}

// chronyd is locked in too well for exec, which is refused, and no matter for a program.
func (b *box) chronyd() {
	b.t.Helper()
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		b.t.Fatal(err)
	}
	b.write("/etc/passwd", string(users)+"_chrony:x:101:65534::/var/lib/chrony:/bin/false\n", 0o644)
	b.write("/etc/chrony/chrony.conf", "server 127.0.0.9\n", 0o644)
	b.write("/etc/default/chrony", "DAEMON_OPTS=-x\n", 0o644) // it leaves the clock alone
	if out, code := b.run(b.weir, "vrf", "service", "chrony", "--vrf", "mgmt", "--install", "--by", "exec"); code != exitFailed || !strings.Contains(out, "chrony.service does not run as root") {
		b.t.Errorf("exit code %d: %s", code, out)
	}
	b.must(b.weir, "vrf", "service", "chrony", "--vrf", "mgmt", "--install")
	b.must("systemctl", "start", "chrony")
	b.listens("323", "mgmt")
	b.must("systemctl", "stop", "chrony")
	b.must(b.weir, "vrf", "service", "chrony", "--undo")
	b.must("systemctl", "start", "chrony")
	b.listens("323", "")
	b.must("systemctl", "stop", "chrony")
}

// apt is meant where its timer is named. The timer is due now, not some time today.
func (b *box) apt() {
	b.t.Helper()
	b.write("/etc/systemd/system/apt-daily.timer.d/soon.conf", "[Timer]\nOnCalendar=\nOnActiveSec=1\nRandomizedDelaySec=0\n", 0o644)
	b.write("/usr/lib/apt/apt.systemd.daily", "#!/bin/sh\nexec /usr/bin/busybox nc -l -p 4001\n", 0o755)
	b.must(b.weir, "vrf", "service", "apt-daily.timer", "--vrf", "mgmt", "--install")
	b.must("systemctl", "start", "apt-daily.timer")
	b.listens("4001", "mgmt")
	b.must("systemctl", "stop", "apt-daily.timer", "apt-daily.service")
	b.must(b.weir, "vrf", "service", "apt-daily.timer", "--undo")
}
