package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// Who lacks a privilege is told which, and two ways to get it; nothing else is
// done before.
func TestPrivilegeMissing(t *testing.T) {
	testutil.Needs(t, "root")
	for _, args := range [][]string{
		{"plan", "-"}, {"apply", "-"}, {"confirm"}, {"rollback"}, {"reset"}, {"status"},
		{"run", "--priority", "3", "--", "true"}, {"set", "--pid", "1", "--priority", "3"},
		{"explain", "--pid", "1"}, {"sockets"}, {"top"}, {"lab", "run", "ssh"},
	} {
		cmd := weir(t, args...)
		cmd.Stdin = strings.NewReader(twoWorkloads)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		_, err := cmd.Output()
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != exitPrivilege {
			t.Errorf("%v: %v", args, err)
			continue
		}
		said := string(exit.Stderr)
		if !strings.Contains(said, " needs CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_SYS_PTRACE\n") ||
			!strings.Contains(said, "help: sudo weir "+args[0]) || strings.Count(said, "help:") != 2 {
			t.Errorf("%v: %s", args, said)
		}
	}
}

// What needs no privilege is said before that is asked for.
func TestPrivilegeComesAfterTheCommandLine(t *testing.T) {
	testutil.Needs(t, "root")
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"apply", "/nowhere"}, exitFailed},
		{[]string{"apply", "/dev/null"}, exitPolicy},
		{[]string{"run", "--priority", "3", "--", "no-such-command"}, exitNotFound},
		{[]string{"set", "--pid", "1"}, exitUsage},
		{[]string{"explain"}, exitUsage},
		{[]string{"sockets", "--workload="}, exitUsage},
		{[]string{"lab", "list"}, exitDone},
	} {
		cmd := weir(t, tt.args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != tt.code {
			t.Errorf("%v: exit code %d, want %d", tt.args, got, tt.code)
		}
	}
}
