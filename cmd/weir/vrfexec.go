package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
)

// vrfExec is weir vrf exec. This very process enters the VRF and then becomes the command.
func (c *cli) vrfExec() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARGUMENTS]",
		Short: "Run a command in a VRF",
		Long: `Run a command in a VRF, as ip vrf exec does: its sockets and those of all of its
children are bound to the VRF. This process enters a cgroup below its own,
vrf/NAME, where a program binds new sockets, and becomes the command: terminal,
signals, exit status, user, capabilities and environment are as they were. NAME
is default to leave a VRF. Open sockets stay where they are.

It takes CAP_NET_ADMIN and CAP_BPF, and that the process may make a cgroup below
its own; nothing where that cgroup is there already, bound and open to the user.
127 and 126 are those of shells, for a command that is not there or can not run.`,
		Example: `  sudo weir vrf exec mgmt -- apt-get update
  sudo weir vrf exec mgmt -- su - $USER        a shell, and all that runs in it
  sudo weir vrf exec default -- ping 192.0.2.1`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return &usageError{"weir vrf exec needs a NAME and a COMMAND", useLine(cmd)}
			case 1:
				return &usageError{"weir vrf exec needs a COMMAND", "weir vrf exec " + args[0] + " -- COMMAND"}
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return append(c.vrfNames(), agent.DefaultVRF), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, command := args[0], args[1:]
			if command[0] == "--" { // pflag leaves it where a word came before
				command = command[1:]
			}
			if len(command) == 0 {
				return &usageError{"weir vrf exec needs a COMMAND", "weir vrf exec " + name + " -- COMMAND"}
			}
			path, err := lookUp(command[0])
			if err != nil {
				return err
			}
			runtime.LockOSThread() // it is this thread that becomes the command
			switch err := agent.EnterVRF(name); {
			case errors.Is(err, fs.ErrPermission):
				return c.mayNotEnter(name, command, err)
			case errors.Is(err, agent.ErrUnknownVRF):
				vrfs, _ := host.VRFDevices()
				return noVRF("vrf exec", name, plan.VRFFacts{VRFs: vrfs}.Names())
			case err != nil:
				return fmt.Errorf("vrf exec %s: %w", name, err)
			}
			c.lookUpIn(name)
			err = unix.Exec(path, command, c.environ())
			return coded{error: fmt.Errorf("run %s: %w", command[0], err), code: exitNotExecutable}
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the command's name is the command's
	return cmd
}

// lookUpIn has names looked up in a VRF, by this thread and by the command that it becomes.
func (c *cli) lookUpIn(name string) {
	if err := host.MountResolver(c.resolver().OwnFile(name)); err != nil {
		c.warn("names are looked up as they are outside of %s: %v", name, err)
	}
}

// mayNotEnter is the refusal. With sudo alone the command would be root's.
func (c *cli) mayNotEnter(name string, command []string, err error) error {
	missing := "CAP_NET_ADMIN, CAP_BPF and write access to its own cgroup"
	if capabilities, capErr := host.MissingCapabilities(); capErr == nil && len(capabilities) == 0 {
		return fmt.Errorf("vrf exec %s: %w", name, err) // root, who is refused for another reason
	}
	return coded{code: exitPrivilege, error: &hinted{
		error: fmt.Errorf("weir vrf exec needs %s", missing),
		help: []string{
			fmt.Sprintf("sudo weir vrf exec %s -- sudo -u $USER %s", name, shellLine(command)),
			fmt.Sprintf("or once for all that follows: sudo weir vrf exec %s -- su - $USER", name),
		},
	}}
}

func (c *cli) vrfIdentify() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "identify [PID] [--json]",
		Short: "Print the VRF of a process",
		Long: `Print the VRF that the new sockets of a process are bound to, and nothing if it
is none: of PID, or of this shell. The name of its cgroup tells, as for ip vrf
identify, else the program that binds its sockets, else the sockets themselves.`,
		Example: `  weir vrf identify
  sudo weir vrf identify $(pidof dockerd) --json`,
		Args:              upTo("PID"),
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid := uint32(os.Getpid()) // in the cgroup that the shell is in
			if len(args) > 0 {
				n, err := strconv.ParseUint(args[0], 10, 32)
				if err != nil || n == 0 {
					return &usageError{fmt.Sprintf("%q is no process id", args[0]), "weir vrf identify $$"}
				}
				pid = uint32(n)
			}
			id, err := agent.IdentifyVRF(cmd.Context(), pid)
			if errors.Is(err, fs.ErrPermission) {
				return c.unprivileged(cmd, []string{"CAP_SYS_ADMIN"})
			}
			if err != nil {
				return fmt.Errorf("vrf identify %d: %w", pid, err)
			}
			if asJSON {
				return c.printJSON(id)
			}
			if id.VRF == "" {
				return nil
			}
			_, err = fmt.Fprintln(c.stdout, id.VRF)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
