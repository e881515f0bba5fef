package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// furnish gives a link more than its addresses, and waits until none of them is new.
func (h *testHost) furnish(t *testing.T, link string) {
	t.Helper()
	for _, line := range []string{
		"addr add 192.0.2.1 peer 192.0.2.2 dev LINK", "-6 addr add 2001:db8:7::1/64 dev LINK nodad",
		"route add default via 10.7.0.2 dev LINK proto dhcp metric 100", "route add 198.51.100.0/24 dev LINK scope link",
		"route add 203.0.113.0/24 via 10.7.0.2 dev LINK table 77", "-6 route add default via fe80::1 dev LINK proto ra metric 1024",
		"neigh add 10.7.0.9 lladdr 02:00:00:00:00:09 dev LINK nud permanent", "-6 neigh add fe80::1 lladdr 02:00:00:00:00:01 dev LINK nud permanent",
		"rule add pref 500 fwmark 7 lookup 77",
	} {
		h.here.Output("ip", strings.Fields(strings.ReplaceAll(line, "LINK", link))...)
	}
	h.until(t, func() bool { return !strings.Contains(h.here.Output("ip", "addr"), " tentative") })
}

// login runs a real sshd on the host, and returns what makes a command that logs in and runs a line
// there, and sshd's process. It ends when one can log in from the far end.
func (h *testHost) login(t *testing.T) (as func(line string) *exec.Cmd, process int) {
	t.Helper()
	server, client := testutil.SSH(t, "10.7.0.1")
	sshd := exec.Command(testutil.Tool(t, "sshd"), server...)
	var said strings.Builder
	sshd.Stderr = &said
	h.start(t, h.here, sshd)
	as = func(line string) *exec.Cmd {
		return exec.Command(testutil.Tool(t, "ssh"), append(client, "root@10.7.0.1", line)...)
	}
	h.until(t, func() (in bool) {
		h.there.Do(func() { in = as("true").Run() == nil })
		return in
	})
	return as, sshd.Process.Pid
}

// start starts a program in a namespace, and ends it with the test.
func (h *testHost) start(t *testing.T, ns *testutil.Namespace, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	ns.Do(func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
}

// applies finds the weir apply of the host that runs, 0 if none does.
func (h *testHost) applies() int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		vars, _ := os.ReadFile(dir + "/environ")
		if strings.Contains(string(args), "weir\x00apply\x00--confirm\x00") && strings.Contains(string(vars), h.scope.Run) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}

// killLogin kills all processes of a session at once, and those of sshd above it up to the one
// that listens.
func killLogin(t *testing.T, session, sshd int) {
	t.Helper()
	var victims []int
	for p := parent(t, session); p != sshd; p = parent(t, p) {
		if p <= 1 {
			t.Fatalf("session %d is below no sshd %d", session, sshd)
		}
		victims = append(victims, p)
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		p, _ := strconv.Atoi(filepath.Base(dir))
		if s, err := unix.Getsid(p); err == nil && s == session {
			victims = append(victims, p)
		}
	}
	for _, p := range victims {
		if err := unix.Kill(p, unix.SIGKILL); err != nil {
			t.Errorf("kill %d: %v", p, err)
		}
	}
	t.Logf("killed %d", victims)
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") "))
	n, err := strconv.Atoi(strings.Fields(string(rest))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestVRFOutlivesItsSession kills an apply that moves the link of the very ssh login that typed it, with
// that login: in the middle, and while the change waits to be confirmed. The link is back each time with
// all that it had, and another login finds the host.
func TestVRFOutlivesItsSession(t *testing.T) {
	testutil.Proves(t, testutil.VRF)
	testutil.Needs(t, "vrf link", "ip", "ssh", "sshd", "ssh-keygen")
	h := newHost(t, "eth0")
	h.furnish(t, "eth0")
	login, sshd := h.login(t)
	file := writePolicy(t, "version: 1\nvrfs: {mgmt: {table: 1000, links: [eth0]}}\nlinks: {eth0: {scheduler: none}}\n")
	before := h.here.Routing()
	line := shellLine([]string{named(t), "apply", "--confirm", "15s", file}) + "; echo ended $?; read -r on"
	for _, v := range h.vars(t) {
		name, value, _ := strings.Cut(v, "=")
		line = "export " + name + "=" + shellWord(value) + "; " + line
	}
	for _, when := range []string{"half way", "applied"} {
		typed := login(line)
		var said bytes.Buffer
		typed.Stderr = &said
		out, err := typed.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := typed.StdinPipe() // the session stays
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		h.start(t, h.there, typed)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: it says %s", when, said.String())
			}
		})
		h.until(t, func() bool { return h.applies() != 0 })
		session, err := unix.Getsid(h.applies())
		if err != nil {
			t.Fatal(err)
		}
		if when == "half way" {
			h.midway(t, 3)
		} else {
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ended 0"; {
				t.Log(lines.Text())
			}
		}
		killLogin(t, session, sshd)
		pending := h.record(t).Pending
		if pending == nil || !alive(pending.Guard) {
			t.Fatalf("%s: nothing is pending, or nobody watches: %+v", when, pending)
		}
		if moved := h.here.Output("ip", "-o", "link", "show", "vrf", "mgmt"); !strings.Contains(moved, "eth0") {
			t.Errorf("%s: in the VRF is %q", when, moved)
		}
		h.until(t, func() bool { return h.record(t).Pending == nil && !alive(pending.Guard) })
		if diff := cmp.Diff(before, h.here.Routing()); diff != "" {
			t.Errorf("%s: taken back, it has (-before +after)\n%s", when, diff)
		}
		if s := h.status(t); !strings.HasPrefix(s, "nothing is applied") || !strings.Contains(s, "no confirmation came") {
			t.Errorf("%s: status is\n%s", when, s)
		}
		h.until(t, func() (in bool) {
			h.there.Do(func() { in = login("true").Run() == nil })
			return in
		})
	}
}
