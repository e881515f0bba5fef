package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/kernel/bind"
	"github.com/weir-net/weir/internal/plan"
)

type serviceFlags struct {
	vrf, by       string
	install, undo bool
}

func (c *cli) vrfService() *cobra.Command {
	var f serviceFlags
	ways := []string{"auto"}
	for _, w := range plan.ServiceWays {
		ways = append(ways, string(w))
	}
	cmd := &cobra.Command{
		Use:   "service UNIT --vrf NAME [--install] [--by WAY] | UNIT --undo",
		Short: "Print, or install, what makes a service of systemd run in a VRF",
		Long: `Print, or with --install write, what makes a service of systemd run in a VRF: a
drop-in with BindNetworkInterface= where this systemd has it (260), or BPFProgram=
(249) and a unit that pins the program, else ExecStart= by weir vrf exec. systemd
itself is asked which it knows. A socket unit gets BindToDevice=, and of a timer it
is the service that is meant. Where the VRF has a resolv.conf of its own (weir vrf
doctor --fix), the service gets that. Nothing is restarted.`,
		Example: `  weir vrf service docker --vrf mgmt
  sudo weir vrf service ssh --vrf mgmt --install && sudo systemctl restart ssh
  sudo weir vrf service apt-daily.timer --vrf mgmt --install
  sudo weir vrf service docker --undo`,
		Args:              exactly("UNIT"),
		ValidArgsFunction: c.completeUnit,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.undo && (f.install || f.vrf != ""):
				return &usageError{"--undo takes a UNIT alone", "weir vrf service " + args[0] + " --undo"}
			case !f.undo && f.vrf == "":
				return &usageError{"weir vrf service needs --vrf NAME", "weir vrf service " + args[0] + " --vrf NAME"}
			}
			if strings.Contains(args[0], "/") {
				return &usageError{fmt.Sprintf("%q is no name of a unit", args[0]), "systemctl list-units"}
			}
			if f.install || f.undo {
				if err := c.mayChange(cmd); err != nil {
					return err
				}
			}
			u := units{c.files}
			if f.undo {
				return c.undoService(cmd.Context(), u, args[0])
			}
			return c.putService(cmd.Context(), u, args[0], &f)
		},
	}
	cmd.Flags().StringVar(&f.vrf, "vrf", "", "the VRF, by its `NAME`")
	_ = cmd.RegisterFlagCompletionFunc("vrf", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return c.vrfNames(), cobra.ShellCompDirectiveNoFileComp
	})
	cmd.Flags().BoolVar(&f.install, "install", false, "write it, and have systemd read it")
	cmd.Flags().Var(oneOf(&f.by, ways...), "by", "the `WAY`: auto, "+strings.Join(ways[1:], ", "))
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(ways, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&f.undo, "undo", false, "remove what --install wrote")
	return cmd
}

func (c *cli) putService(ctx context.Context, u units, word string, f *serviceFlags) error {
	name, text, notes, err := u.unitOf(word)
	if err != nil {
		return fmt.Errorf("vrf service: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("vrf service: %w", err)
	}
	s := plan.VRFService{Unit: name, Text: text, VRF: f.vrf, Way: plan.ServiceWay(f.by), Weir: self, ResolvConf: "/etc/resolv.conf"}
	if s.Way == "auto" {
		if s.Way, err = serviceWay(ctx); err != nil {
			return fmt.Errorf("vrf service %s: %w", name, err)
		}
	}
	if c.resolver().OwnFile(f.vrf) != "" {
		s.Resolver = agent.Resolver{Root: "/"}.VRFFile(f.vrf)
		if target, err := filepath.EvalSymlinks(filepath.Join(u.root, "/etc/resolv.conf")); err == nil {
			s.ResolvConf = filepath.Join("/", strings.TrimPrefix(target, filepath.Clean(u.root)))
		}
	}
	files, err := s.Files()
	if err != nil {
		return fmt.Errorf("vrf service: %w", err)
	}
	for _, note := range notes {
		c.warn("%s", note)
	}
	if known, err := c.knownVRFs(); err != nil {
		return fmt.Errorf("vrf service: %w", err)
	} else if !slices.Contains(known, f.vrf) {
		c.warn("there is no VRF %s here: the service will not start, or not reach the network, before there is", f.vrf)
	}
	paths := slices.Sorted(maps.Keys(files))
	if !f.install {
		var b strings.Builder
		for i, path := range paths {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "# %s\n%s", path, files[path])
		}
		_, err := io.WriteString(c.stdout, b.String())
		return err
	}
	for _, path := range paths {
		if err := u.write(path, files[path]); err != nil {
			return fmt.Errorf("vrf service: %w", err)
		}
		fmt.Fprintf(c.stdout, "wrote %s\n", path)
	}
	return c.reread(ctx, u, name)
}

// undoService removes the drop-in of a unit, and the pin and the unit of the pins with the last one that
// needs them. The service goes on as it is meanwhile.
func (c *cli) undoService(ctx context.Context, u units, word string) error {
	name, _, _, err := u.unitOf(word)
	if err != nil {
		return fmt.Errorf("vrf service --undo: %w", err)
	}
	before, err := u.installed()
	if err != nil {
		return fmt.Errorf("vrf service --undo: %w", err)
	}
	etc := filepath.Join(u.root, unitDirectories[0])
	removed, err := removeMade(filepath.Join(etc, name+".d", plan.DropInName))
	if err != nil {
		return fmt.Errorf("vrf service --undo: %w", err)
	}
	_ = os.Remove(filepath.Join(etc, name+".d")) // if that was all in it
	vrf, needed, shared := before[name], false, false
	others, _ := filepath.Glob(filepath.Join(etc, "*.d", plan.DropInName))
	for _, path := range others {
		text, err := os.ReadFile(path)
		pins := err != nil || strings.Contains(string(text), "weir-vrf@")
		needed, shared = needed || pins, shared || pins && plan.DropInVRF(string(text)) == vrf
	}
	if _, err := os.Stat(filepath.Join(etc, plan.PinUnit)); err == nil && vrf != "" && !shared {
		// Only once nobody requires it any more: else its end would be the service's.
		if err := errors.Join(systemctl(ctx, u, "daemon-reload"), systemctl(ctx, u, "stop", plan.PinInstance(vrf))); err != nil {
			return fmt.Errorf("vrf service --undo: %w", err)
		}
	}
	if !needed {
		pin, err := removeMade(filepath.Join(etc, plan.PinUnit))
		if err != nil {
			return fmt.Errorf("vrf service --undo: %w", err)
		}
		removed = append(removed, pin...)
	}
	if len(removed) == 0 {
		_, err := fmt.Fprintf(c.stdout, "%s has nothing of --install.\n", name)
		return err
	}
	for _, path := range removed {
		fmt.Fprintf(c.stdout, "removed %s\n", filepath.Join("/", strings.TrimPrefix(path, filepath.Clean(u.root))))
	}
	return c.reread(ctx, u, name)
}

// reread has systemd read its files, where it runs, and says what is left to do: a restart may end what
// the service does for others.
func (c *cli) reread(ctx context.Context, u units, name string) error {
	if err := systemctl(ctx, u, "daemon-reload"); err != nil {
		return fmt.Errorf("vrf service: %w", err)
	}
	_, err := fmt.Fprintf(c.stdout, "systemctl restart %s puts it into force\n", name)
	return err
}

// systemctl tells systemd something, where it runs.
func systemctl(ctx context.Context, u units, args ...string) error {
	if _, err := os.Stat(filepath.Join(u.root, "/run/systemd/system")); err != nil || u.root != "/" {
		return nil
	}
	if out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// serviceWay asks this systemd which of the ways it knows: by a unit that uses them, as its version alone
// does not tell what it was built with.
func serviceWay(ctx context.Context) (plan.ServiceWay, error) {
	dir, err := os.MkdirTemp("", "weir-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "weir-probe.service")
	const unit = "[Service]\nExecStart=/bin/true\nBindNetworkInterface=lo\nBPFProgram=sock_create:/sys/fs/bpf/probe\n"
	if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return "", &hinted{errors.New("systemd-analyze, which tells what systemd can do, is not here"), []string{"--by says which way to take"}}
	}
	for _, way := range []plan.ServiceWay{plan.ByInterface, plan.ByProgram} {
		if !strings.Contains(string(out), string(way)) { // it complains of what it does not know
			return way, nil
		}
	}
	return plan.ByExec, nil
}

// vrfPin is what the unit of the pins runs.
func (c *cli) vrfPin() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:    "pin NAME [--remove]",
		Short:  "Pin the program that binds to a VRF (for units of weir vrf service)",
		Hidden: true,
		Example: `  weir vrf pin mgmt
  weir vrf pin mgmt --remove`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := filepath.Join(plan.ServicePins, filepath.Base(args[0]))
			var err error
			if remove {
				err = bind.Unpin(path)
			} else {
				err = agent.PinVRF(args[0], path)
			}
			if errors.Is(err, fs.ErrPermission) {
				return c.unprivileged(cmd, []string{"CAP_NET_ADMIN", "CAP_BPF"})
			}
			if err != nil {
				return fmt.Errorf("vrf pin: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "take the pin away")
	return cmd
}
