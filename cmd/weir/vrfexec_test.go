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
		cmd := weir(t, "vrf", "exec", "mgmt", "--", "sh", "-c", "cat /proc/self/cgroup; id -u")
		dir, err := os.Open(h.scope.Cgroup)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: uid, Gid: uid}, UseCgroupFD: true, CgroupFD: int(dir.Fd()),
		}
		var out []byte
		h.here.Do(func() { out, err = cmd.Output() })
		said := ""
		if exit, ok := err.(*exec.ExitError); ok {
			said = string(exit.Stderr)
		}
		return cmd.ProcessState.ExitCode(), string(out), said
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
