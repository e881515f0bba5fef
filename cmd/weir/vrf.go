package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
)

func (c *cli) vrf() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vrf",
		Short: "Routing domains: which there are, what is in them, and running commands there",
		Long: `Routing domains (VRFs): which there are, whose they are, and running commands in
them. A VRF is a device with a table of routes of its own; what is in it knows no
other route, and no other address, those of loopback included.`,
		Example: `  weir vrf list
  sudo weir vrf exec mgmt -- apt-get update
  weir vrf identify $$`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.vrfList(), c.vrfShow(), c.vrfExec(), c.vrfIdentify(), c.vrfDoctor(), c.vrfService(), c.vrfPrompt(), c.vrfPin())
	return cmd
}

// A vrfListReport is the JSON of weir vrf list.
type vrfListReport struct {
	SchemaVersion string           `json:"schema_version"`
	VRFs          []plan.VRFDevice `json:"vrfs"`
}

// A vrfReport is the JSON of weir vrf show.
type vrfReport struct {
	SchemaVersion string         `json:"schema_version"`
	VRF           plan.VRFDevice `json:"vrf"`
	Rules         []plan.VRFRule `json:"rules"`
	Accept        map[string]int `json:"accept"`
}

func (c *cli) vrfList() *cobra.Command {
	var asJSON bool
	var netns string
	cmd := &cobra.Command{
		Use:   "list [--netns NAME] [--json]",
		Short: "List the VRFs",
		Long: `List the VRFs of this network namespace, or of another one: their tables, the
devices that are in them, the addresses of those and where packets go by default.`,
		Example: `  weir vrf list
  sudo weir vrf list --netns blue
  weir vrf list --json | jq -r '.vrfs[].name'`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts, err := c.vrfFacts(cmd, netns)
			if err != nil {
				return fmt.Errorf("vrf list: %w", err)
			}
			if asJSON {
				return c.printJSON(vrfListReport{schemaVersion, facts.VRFs})
			}
			if len(facts.VRFs) == 0 {
				_, err := io.WriteString(c.stdout, "No VRF here.\n")
				return err
			}
			var b strings.Builder
			c.vrfTable(&b, facts)
			_, err = io.WriteString(c.stdout, b.String())
			return err
		},
	}
	addNetns(cmd, &netns)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func addNetns(cmd *cobra.Command, netns *string) {
	cmd.Flags().StringVar(netns, "netns", "", "another network namespace: its `NAME` in /run/netns, or a path")
	_ = cmd.RegisterFlagCompletionFunc("netns", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		paths, _ := filepath.Glob("/run/netns/*")
		for i, p := range paths {
			paths[i] = filepath.Base(p)
		}
		return paths, cobra.ShellCompDirectiveNoFileComp
	})
}

// netnsPath is where a namespace of that name is.
func netnsPath(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return "/run/netns/" + name
}

func (c *cli) vrfFacts(cmd *cobra.Command, netns string) (plan.VRFFacts, error) {
	a, err := c.agent()
	if err != nil {
		return plan.VRFFacts{}, err
	}
	return a.VRFs(cmd.Context(), netnsPath(netns))
}

func (c *cli) vrfTable(b *strings.Builder, facts plan.VRFFacts) {
	paint := c.paint(c.stdout)
	t := table{columns: []column{
		{title: "VRF"}, {title: "TABLE", right: true}, {title: "STATE"}, {title: "LINKS"}, {title: "ADDRESSES", rank: 1}, {title: "DEFAULT", rank: 2},
	}}
	for _, v := range facts.VRFs {
		state := cell{"up", paint.green}
		if !v.Up {
			state = cell{"down", paint.red}
		}
		var links, addresses, ways []string
		for _, m := range v.Members {
			links = append(links, m.Name)
			addresses = append(addresses, reachable(m.Addresses)...)
		}
		for _, family := range []int{4, 6} {
			for _, r := range v.DefaultRoutes(family) {
				ways = append(ways, strings.TrimPrefix(r.String(), "default "))
			}
		}
		t.add(cell{v.Name, paint.bold}, cell{text: fmt.Sprint(v.Table)}, state, cell{text: orNone(strings.Join(links, " "))},
			cell{text: strings.Join(addresses, " ")}, cell{text: orNone(strings.Join(ways, ", "))})
	}
	t.render(b, paint, "", c.columns(c.stdout))
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// reachable leaves out the addresses that every device has.
func reachable(prefixes []netip.Prefix) (texts []string) {
	for _, p := range prefixes {
		if !p.Addr().IsLinkLocalUnicast() {
			texts = append(texts, p.String())
		}
	}
	return texts
}

func (c *cli) vrfShow() *cobra.Command {
	var asJSON bool
	var netns string
	cmd := &cobra.Command{
		Use:   "show NAME [--netns NAME] [--json]",
		Short: "Show all of a VRF: links, addresses, routes, rules",
		Example: `  weir vrf show mgmt
  weir vrf show mgmt --json | jq '.vrf.routes'`,
		Args:              exactly("NAME"),
		ValidArgsFunction: c.completeVRF,
		RunE: func(cmd *cobra.Command, args []string) error {
			facts, err := c.vrfFacts(cmd, netns)
			if err != nil {
				return fmt.Errorf("vrf show: %w", err)
			}
			v, ok := facts.VRF(args[0])
			if !ok {
				return noVRF("vrf show", args[0], facts.Names())
			}
			if asJSON {
				return c.printJSON(vrfReport{schemaVersion, v, facts.Rules, facts.Accept})
			}
			_, err = io.WriteString(c.stdout, c.vrfText(v, facts))
			return err
		},
	}
	addNetns(cmd, &netns)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// noVRF says which ones there are.
// namingVRFs says of an error that a VRF is not there which ones are.
func (c *cli) namingVRFs(err error, name string) error {
	if !errors.Is(err, agent.ErrUnknownVRF) {
		return err
	}
	names, _ := c.knownVRFs()
	return &hinted{err, []string{didYouMean(name, names, "weir vrf list")}}
}

func noVRF(verb, name string, names []string) error {
	return &hinted{
		error: fmt.Errorf("%s: VRF %q: no such VRF here", verb, name),
		help:  []string{didYouMean(name, names, "weir vrf list")},
	}
}

func (c *cli) vrfText(v plan.VRFDevice, facts plan.VRFFacts) string {
	var b strings.Builder
	paint, columns := c.paint(c.stdout), c.columns(c.stdout)
	state := paint.green("up")
	if !v.Up {
		state = paint.red("down")
	}
	fmt.Fprintf(&b, "%s: table %d, %s\n", paint.bold(v.Name), v.Table, state)
	line := func(title, text string) { hang(&b, fmt.Sprintf("  %-9s  ", title), text, columns, nil) }
	line("loopback", orNone(joined(v.Addresses)))
	for i, m := range v.Members {
		title := ""
		if i == 0 {
			title = "links"
		}
		text := m.Name
		if !m.Up {
			text += " (down)"
		}
		line(title, strings.TrimSpace(text+" "+joined(m.Addresses)))
	}
	for i, r := range v.Routes {
		title := ""
		if i == 0 {
			title = "routes"
		}
		text := r.String()
		if r.Metric != 0 {
			text += fmt.Sprintf(" metric %d", r.Metric)
		}
		line(title, text)
	}
	for _, family := range []int{4, 6} {
		var order []string
		for _, r := range facts.Rules {
			if r.Family == family {
				order = append(order, r.String())
			}
		}
		line(fmt.Sprintf("rules v%d", family), orNone(strings.Join(order, ", ")))
	}
	var accept []string
	for _, name := range []string{"tcp_l3mdev_accept", "udp_l3mdev_accept", "raw_l3mdev_accept"} {
		if value, ok := facts.Accept[name]; ok {
			accept = append(accept, fmt.Sprintf("%s=%d", name, value))
		}
	}
	line("sysctls", orNone(strings.Join(accept, " ")))
	return b.String()
}

func joined(prefixes []netip.Prefix) string {
	var texts []string
	for _, p := range prefixes {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, " ")
}

// completeVRF completes the first argument by the VRFs that there are.
func (c *cli) completeVRF(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.vrfNames(), cobra.ShellCompDirectiveNoFileComp
}

// vrfNames are those for a shell that waits.
func (c *cli) vrfNames() []string {
	return c.inTime(func(context.Context) ([]string, error) { return c.knownVRFs() })
}

func (c *cli) knownVRFs() (names []string, err error) {
	scope, err := c.scope()
	if err != nil {
		return nil, err
	}
	err = host.InNetns(scope.Netns, func() error {
		vrfs, err := host.VRFDevices()
		names = plan.VRFFacts{VRFs: vrfs}.Names()
		return err
	})
	return names, err
}
