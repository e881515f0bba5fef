package testutil

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Tool is the path of a program that serves as a witness in tests ("tc", "ip",
// "bpftool", "iperf3"). The test is skipped where it is not installed.
func Tool(t testing.TB, name string) string {
	t.Helper()
	Needs(t, name)
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Output runs a command in the caller's namespace and returns what it printed
// on standard output; the test fails where the command does.
func Output(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := output(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s %s: %w\n%s%s", name, strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}
