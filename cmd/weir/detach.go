package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// detach starts this program again as a process that outlives the caller: in a
// session and process group of its own, without a terminal, on no file of the
// caller's. It keeps the environment and nothing else.
//
// What remains: where a service manager of another kind kills by cgroup, or
// somebody kills every process of the user, it dies with the session; weir
// status then names the change that nobody watches.
func (c *cli) detach(scope state.Scope) func(args ...string) (int, error) {
	return func(args ...string) (int, error) {
		cmd := exec.Command("/proc/self/exe", args...) // the file may have been replaced since
		cmd.Args[0] = "weir"
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return 0, fmt.Errorf("start weir %s: %w", args[0], err)
		}
		pid := cmd.Process.Pid
		if scope.Pins == state.HostPins {
			if err := leaveSession(pid); err != nil {
				c.warn("%s stays in this session's cgroup and may end with it: %v", args[0], err)
			}
		}
		return pid, cmd.Process.Release()
	}
}

// leaveSession moves a process out of the session's scope where systemd runs: at
// the end of a login it kills all that is left in it (KillUserProcesses=). The
// root of the hierarchy belongs to no unit. This is done before the first
// change, and where it can not be done the process goes on as it is.
func leaveSession(pid int) error {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil
	}
	h, err := workload.FindHierarchies()
	if err != nil {
		return err
	}
	for _, root := range []string{h.V2, h.V1["name=systemd"]} {
		if root != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
		}
	}
	return err
}
