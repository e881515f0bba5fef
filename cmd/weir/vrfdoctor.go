package main

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
)

func (c *cli) resolver() agent.Resolver { return agent.Resolver{Root: c.files} }

// A vrfDoctorReport is the JSON of weir vrf doctor.
type vrfDoctorReport struct {
	SchemaVersion string                     `json:"schema_version"`
	Findings      []plan.Finding             `json:"findings"`
	Lookups       map[string]plan.VRFLookups `json:"lookups"` // by VRF
	Changed       []string                   `json:"changed"` // the files that --fix wrote or --undo removed
}

type vrfDoctorFlags struct {
	netns     string
	fix, undo bool
	servers   []string
	asJSON    bool
}

func (c *cli) vrfDoctor() *cobra.Command {
	var f vrfDoctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [NAME] [--fix [--dns ADDRESS] | --undo] [--netns NAME] [--json]",
		Short: "Say what is wrong with a VRF, its name lookups included, and mend these",
		Long: `Say what is wrong with the VRFs, or one of them: the order of rules, tables,
routes, loopback addresses, and name lookups from end to end: whom resolv.conf
names, whether that answers a question from inside of the VRF, and why not. A
finding is ok, warn, fail or skip, as those of weir doctor are.

--fix mends the lookups: the servers that systemd-resolved asks, or those of --dns,
as far as they answer in the VRF, go into a resolv.conf for that VRF alone,
/etc/weir/vrf/NAME/resolv.conf. weir vrf exec puts it in place of /etc/resolv.conf
for what it runs; nothing else sees it. --undo removes it, as weir reset does.`,
		Example: `  weir vrf doctor
  sudo weir vrf doctor mgmt --fix
  sudo weir vrf doctor mgmt --fix --dns 10.0.0.53
  sudo weir vrf doctor mgmt --undo`,
		Args:              upTo("NAME"),
		ValidArgsFunction: c.completeVRF,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return c.examineVRFs(cmd, name, &f)
		},
	}
	cmd.Flags().BoolVar(&f.fix, "fix", false, "give a VRF whose lookups fail a resolv.conf of its own")
	cmd.Flags().StringArrayVar(&f.servers, "dns", nil, "with --fix: this server, by its `ADDRESS`; may be repeated")
	cmd.Flags().BoolVar(&f.undo, "undo", false, "remove what --fix made")
	addNetns(cmd, &f.netns)
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

// check returns the addresses of --dns.
func (f *vrfDoctorFlags) check() (servers []netip.Addr, err error) {
	switch {
	case f.fix && f.undo:
		return nil, &usageError{"--fix and --undo are opposites", "weir vrf doctor --help"}
	case len(f.servers) > 0 && !f.fix:
		return nil, &usageError{"--dns is for --fix", "weir vrf doctor --fix --dns " + f.servers[0]}
	}
	for _, text := range f.servers {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("--dns %q is no address", text), "weir vrf doctor --fix --dns 10.0.0.53"}
		}
		servers = append(servers, a)
	}
	return servers, nil
}

func (c *cli) examineVRFs(cmd *cobra.Command, name string, f *vrfDoctorFlags) error {
	servers, err := f.check()
	if err != nil {
		return err
	}
	if f.fix || f.undo {
		if err := c.mayChange(cmd); err != nil {
			return err
		}
	}
	a, err := c.agent()
	if err != nil {
		return err
	}
	r := vrfDoctorReport{schemaVersion, []plan.Finding{}, map[string]plan.VRFLookups{}, []string{}}
	if f.undo {
		removed, err := c.resolver().UndoLookups(name)
		if err != nil {
			return fmt.Errorf("vrf doctor --undo: %w", err)
		}
		r.Changed = append(r.Changed, removed...)
		return c.printVRFFindings(r, f)
	}
	netns := netnsPath(f.netns)
	facts, err := a.VRFs(cmd.Context(), netns)
	switch {
	case errors.Is(err, host.ErrNoVRF):
		r.Findings = []plan.Finding{{
			ID: "kernel", State: plan.FindingFail, Text: err.Error(), Stops: "vrfs: of a policy, and weir vrf exec", Mend: "modprobe vrf, or a kernel with CONFIG_NET_VRF",
		}}
		if err := c.addServices(&r, f, nil, name); err != nil {
			return err
		}
		return c.printVRFFindings(r, f)
	case err != nil:
		return fmt.Errorf("vrf doctor: %w", err)
	}
	some := facts.VRFs
	if name != "" {
		v, ok := facts.VRF(name)
		if !ok {
			return noVRF("vrf doctor", name, facts.Names())
		}
		some = []plan.VRFDevice{v}
	}
	if r.Lookups, err = a.VRFLookups(cmd.Context(), c.resolver(), netns, some); err != nil {
		return fmt.Errorf("vrf doctor: %w", err)
	}
	r.Findings = plan.VRFDoctor(facts, r.Lookups, name)
	if f.fix {
		var ill []string
		for _, v := range some {
			if len(servers) > 0 || slices.ContainsFunc(r.Findings, func(x plan.Finding) bool { return x.ID == v.Name+"/dns" && x.State != plan.FindingOK }) {
				ill = append(ill, v.Name)
			}
		}
		for _, vrf := range ill {
			if _, err := a.FixLookups(c.resolver(), netns, vrf, servers); err != nil {
				return fixFailed(vrf, err)
			}
			r.Changed = append(r.Changed, c.resolver().VRFFile(vrf))
		}
		if len(ill) > 0 {
			if r.Lookups, err = a.VRFLookups(cmd.Context(), c.resolver(), netns, some); err != nil {
				return fmt.Errorf("vrf doctor: %w", err)
			}
			r.Findings = plan.VRFDoctor(facts, r.Lookups, name)
		}
	}
	if err := c.addServices(&r, f, facts.Names(), name); err != nil {
		return err
	}
	return c.printVRFFindings(r, f)
}

// addServices adds what is to be said of units that weir vrf service keeps, which are of this network
// namespace: of all, or of those for one VRF.
func (c *cli) addServices(r *vrfDoctorReport, f *vrfDoctorFlags, known []string, name string) error {
	if f.netns != "" {
		return nil
	}
	installed, err := units{c.files}.installed()
	if err != nil {
		return fmt.Errorf("vrf doctor: %w", err)
	}
	maps.DeleteFunc(installed, func(_, vrf string) bool { return name != "" && vrf != name })
	r.Findings = append(r.Findings, plan.VRFServices(known, installed)...)
	return nil
}

func fixFailed(vrf string, err error) error {
	err = fmt.Errorf("vrf doctor %s --fix: %w", vrf, err)
	switch {
	case errors.Is(err, agent.ErrNoServer):
		return &hinted{err, []string{"weir vrf doctor " + vrf + " --fix --dns ADDRESS names one that the VRF reaches"}}
	case errors.Is(err, agent.ErrForeignFile):
		return &hinted{err, []string{"edit it, or move it away: weir vrf exec " + vrf + " uses it as it is"}}
	}
	return err
}

// mayChange refuses who is not root: files below /etc are to be written.
func (c *cli) mayChange(cmd *cobra.Command) error {
	missing, err := host.MissingCapabilities()
	if err == nil && len(missing) > 0 {
		err = c.unprivileged(cmd, missing)
	}
	return err
}

func (c *cli) printVRFFindings(r vrfDoctorReport, f *vrfDoctorFlags) error {
	var err error
	if f.asJSON {
		err = c.printJSON(r)
	} else {
		verb := "wrote"
		if f.undo {
			verb = "removed"
		}
		for _, path := range r.Changed {
			fmt.Fprintf(c.stdout, "%s %s\n", verb, path)
		}
		if f.undo && len(r.Changed) == 0 {
			fmt.Fprintln(c.stdout, "Nothing of --fix was here.")
		}
		err = printFindings(c.stdout, c.paint(c.stdout), c.columns(c.stdout), r.Findings)
	}
	if err == nil && tally(r.Findings)[plan.FindingFail] > 0 {
		return told(exitFailed)
	}
	return err
}

// undoVRFFiles is what reset does of it, told as reset tells.
func (c *cli) undoVRFFiles(b *strings.Builder) (int, error) {
	removed, err := c.resolver().UndoLookups("")
	for _, path := range removed {
		fmt.Fprintf(b, "%s %s\n", c.paint(c.stdout).red("-"), path)
	}
	return len(removed), err
}
