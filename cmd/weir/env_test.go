package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// The scope of the product is the whole host, whatever is in the environment.
func TestWholeHost(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	t.Setenv(scopeVar, `{"Cgroup":"/elsewhere"}`)
	s, err := system().scope()
	if err != nil || s.Pins != state.HostPins || s.Netns != "" || s.Cgroup == "" || s.Cgroup == "/elsewhere" {
		t.Errorf("the scope is %+v, %v", s, err)
	}
	if _, err := os.Stat(s.Cgroup + "/cgroup.controllers"); err != nil {
		t.Errorf("%s is no v2 hierarchy: %v", s.Cgroup, err)
	}
}

// Without a v2 hierarchy there is a scope still, and an apply says what is
// missing before it changes anything.
func TestNoCgroup2(t *testing.T) {
	h := newHost(t, "eth0")
	h.scope.Cgroup = ""
	file := writePolicy(t, twoWorkloads)
	for _, args := range [][]string{{"apply", file}, {"plan", file}, {"run", "--priority", "3", "true"}} {
		cmd := h.command(t, args...)
		var out strings.Builder
		cmd.Stderr = &out
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(out.String(), "no cgroup2 mount here\n  help: mount -t cgroup2 none /sys/fs/cgroup\n") {
			t.Errorf("%v: exit code %d: %s", args, code, &out)
		}
	}
	if _, err := os.Stat(h.scope.Run + "/state.json"); err == nil {
		t.Error("something was remembered")
	}
	h.scope.Cgroup = "/nowhere" // for the reset at the end

	// A mount namespace without it looks like such a host.
	mount, err := system().scope()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-c", `umount -l "$0" && exec /proc/self/fd/3 -test.run=^TestPrintScope$ -test.v`, mount.Cgroup)
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = append(os.Environ(), "WEIR_TEST_PRINT_SCOPE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"Cgroup":""`) {
		t.Errorf("the scope without a v2 hierarchy: %v\n%s", err, out)
	}
}

// TestPrintScope is what TestNoCgroup2 runs elsewhere.
func TestPrintScope(t *testing.T) {
	if os.Getenv("WEIR_TEST_PRINT_SCOPE") == "" {
		return
	}
	s, err := wholeHost()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(s)
	t.Logf("%s", text)
}
