package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseSSH(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7 50000 192.0.2.1 22":     "192.0.2.7 at 192.0.2.1",
		"2001:db8::7 50000 2001:db8::1 22": "2001:db8::7 at 2001:db8::1",
		"fe80::7%eth0 50000 fe80::1 22":    "fe80::7%eth0 at fe80::1",
		"":                                 "",
		"UNKNOWN 65535 UNKNOWN 65535":      "", // what sshd says of a pipe
		"192.0.2.7":                        "",
	} {
		got := ""
		if client, server, ok := parseSSH(text); ok {
			got = client.String() + " at " + server.String()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// sudo drops the variable; the shell from which it was called has it.
func TestSSHIsKnownThroughSudo(t *testing.T) {
	h := newHost(t, "eth0")
	file := writePolicy(t, twoWorkloads)
	// The shells stay: each has something to do after it.
	cmd := exec.Command("sh", "-c", `env -u SSH_CONNECTION sh -c '"$0" apply "$1"; exit $?' "$0" "$1"; exit $?`, named(t), file)
	cmd.Env = append(append(os.Environ(), h.vars(t)...), "SSH_CONNECTION=10.7.0.2 50000 10.7.0.1 22")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(string(out), "carries your ssh session (from 10.7.0.2)") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// named is a path by which the test binary is weir.
func named(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "weir")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}
