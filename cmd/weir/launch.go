package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/policy"
)

// What shells end with for a command that is there and can not run, and for one
// that is not there.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// launch is weir run. The contract is given to this very process, which then
// becomes the command: signals, exit status and terminal are the command's own.
func (c *cli) launch() *cobra.Command {
	var f termsFlags
	cmd := &cobra.Command{
		Use:   "run [--priority N] [--egress-max RATE] [--ingress-max RATE [--ingress-method METHOD]] [--tcp-memory-max SIZE] [--vrf NAME] [--via VIA] -- COMMAND [ARGUMENTS]",
		Short: "Start a command under a contract",
		Long: `Start a command under a contract, as nice does: its sockets and those of all of
its children have the contract, in place of what the policy says of them. That is
a priority, a limit that they share on all links together, one on what they all
receive, a bound on what their TCP connections hold in memory, a VRF, or any of these. Signals, terminal and exit status are the command's own;
127 and 126 are those of shells, for a command that is not there or can not run.

--vrf NAME binds its sockets to a VRF of the policy, or to any other that the host
has, and names are looked up there as for weir vrf exec, which needs no policy.`,
		Example: `  sudo weir run --priority 2 -- rsync -a /srv backup:/srv
  sudo weir run --priority eth0=2,default=8 -- make push
  sudo weir run --egress-max 50Mbit -- restic backup /srv
  sudo weir run --ingress-max 20Mbit -- apt-get dist-upgrade
  sudo weir run --tcp-memory-max 64MiB -- crawler
  sudo weir run --vrf mgmt --egress-max 10Mbit -- apt-get update
  sudo weir run --priority 6 --via net_prio -- streamer`,
		Args: atLeast("COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if !f.promise() {
				return &usageError{"weir run needs --priority, --egress-max, --ingress-max, --tcp-memory-max or --vrf", "weir run --priority N -- " + shellLine(args)}
			}
			path, err := lookUp(args[0])
			if err != nil {
				return err
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			runtime.LockOSThread() // it is this thread that becomes the command
			err = c.give(cmd.Context(), a, uint32(os.Getpid()), &f)
			if err == nil && f.vrf.value != "" {
				err = c.enterVRF(f.vrf.value)
			}
			if err != nil {
				return fmt.Errorf("run %s: %w", args[0], err)
			}
			err = unix.Exec(path, args, c.environ())
			return coded{error: fmt.Errorf("run %s: %w", args[0], err), code: exitNotExecutable}
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the command's name is the command's
	c.addTerms(cmd, &f)
	return cmd
}

// lookUp finds a command as a shell does.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // PATH names a relative directory
		return path, nil
	case errors.Is(err, exec.ErrNotFound):
		return "", coded{error: fmt.Errorf("run %s: command not found", name), code: exitNotFound}
	case errors.Is(err, fs.ErrNotExist):
		return "", coded{error: fmt.Errorf("run %s: no such file", name), code: exitNotFound}
	case errors.Is(err, fs.ErrPermission):
		return "", coded{error: fmt.Errorf("run %s: it is not executable", name), code: exitNotExecutable}
	}
	return "", coded{error: fmt.Errorf("run %s: %w", name, errors.Unwrap(err)), code: exitNotExecutable}
}

func viaOf(flag string) policy.Via {
	if flag == "net_prio" {
		return policy.ViaNetPrio
	}
	return policy.ViaBPF
}

// enterVRF looks whether new sockets of this process are in a VRF by now, and has names looked
// up there.
func (c *cli) enterVRF(name string) error {
	if err := agent.ProveBound(name); err != nil {
		return err
	}
	c.lookUpIn(name)
	return nil
}

// give gives a process a contract.
func (c *cli) give(ctx context.Context, a *agent.Agent, pid uint32, f *termsFlags) error {
	if viaOf(f.via) == policy.ViaNetPrio {
		return patiently(ctx, amongMany, func() error { return a.SetNetPrio(ctx, pid, f.priority.value) })
	}
	if a.Scope.Cgroup == "" {
		return errNoCgroup2
	}
	if err := knownLinks(a, f.priority.value); err != nil {
		return err
	}
	err := patiently(ctx, amongMany, func() error { return a.Set(ctx, pid, f.terms()) })
	return c.namingVRFs(err, f.vrf.value)
}
