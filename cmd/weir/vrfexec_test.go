package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// Who may not bind sockets is told what is missing, unless somebody has prepared the
// cgroup: then no privilege is needed.
func TestVRFExecWithoutPrivilege(t *testing.T) {
	testutil.Needs(t, "vrf link", "ip")
	h := newHost(t, "eth0")
	h.here.Output("ip", "link", "add", "mgmt", "up", "type", "vrf", "table", "1000")
	run := func(uid uint32) (int, string, string) {
		t.Helper()
		return h.as(t, uid, h.scope.Cgroup, "vrf", "exec", "mgmt", "--", "sh", "-c", "cat /proc/self/cgroup; id -u")
	}
	code, _, said := run(65534)
	if code != exitPrivilege || !strings.Contains(said, "weir vrf exec needs CAP_NET_ADMIN, CAP_BPF") || strings.Count(said, "help:") != 2 {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, out, said := run(0); code != 0 || !strings.Contains(out, "/vrf/mgmt\n") {
		t.Fatalf("root: exit code %d: %s%s", code, out, said)
	}
	bound := filepath.Join(h.scope.Cgroup, "vrf", "mgmt")
	for _, dir := range []string{h.scope.Cgroup, bound} {
		if err := os.Chown(filepath.Join(dir, "cgroup.procs"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, said := run(65534); code != 0 || !strings.Contains(out, "/vrf/mgmt\n") || !strings.HasSuffix(out, "65534\n") {
		t.Errorf("nobody, in a cgroup of its own: exit code %d: %s%s", code, out, said)
	}
}

// Who may not read programs is told by the cgroup's name and by a socket of its own.
func TestVRFExecIsIdentifiedByAnybody(t *testing.T) {
	testutil.Needs(t, "vrf link", "ip")
	h := newHost(t, "eth0")
	h.here.Output("ip", "link", "add", "mgmt", "up", "type", "vrf", "table", "1000")
	if code, out, said := h.as(t, 0, h.scope.Cgroup, "vrf", "exec", "mgmt", "--", "true"); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	bound, set := filepath.Join(h.scope.Cgroup, "vrf", "mgmt"), filepath.Join(h.scope.Cgroup, "set")
	if err := os.Mkdir(set, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(set) })
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nlinks: {eth0: {scheduler: none}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"apply", file}, {"set", "--cgroup", set, "--vrf", "mgmt"}} {
		if code, out, said := h.as(t, 0, h.scope.Cgroup, args...); code != 0 {
			t.Fatalf("%s: exit code %d: %s%s", args, code, out, said)
		}
	}
	t.Cleanup(func() { h.as(t, 0, h.scope.Cgroup, "reset") })
	for cgroup, want := range map[string]string{h.scope.Cgroup: `"vrf": "",`, bound: `"by": "cgroup",`, set: `"by": "sockets",`} {
		code, out, said := h.as(t, 65534, cgroup, "vrf", "identify", "--json")
		if code != 0 || !strings.Contains(out, want) || cgroup != h.scope.Cgroup && !strings.Contains(out, `"vrf": "mgmt",`) {
			t.Errorf("%s: exit code %d: %s%s", cgroup, code, out, said)
		}
	}
}

// as runs the command in this host and a cgroup by a user id: its exit code, and what it says.
func (h *testHost) as(t *testing.T, uid uint32, cgroup string, args ...string) (code int, out, said string) {
	t.Helper()
	cmd := weir(t, args...)
	dir, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uid, Gid: uid}, UseCgroupFD: true, CgroupFD: int(dir.Fd()),
	}
	var b []byte
	h.here.Do(func() { b, err = cmd.Output() })
	if exit, ok := err.(*exec.ExitError); ok {
		said = string(exit.Stderr)
	}
	return cmd.ProcessState.ExitCode(), string(b), said
}
