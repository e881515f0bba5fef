package main

import (
	"context"

	"github.com/spf13/cobra"
)

// A cli is one run of the program.
type cli struct {
	env
	color string // --color
}

// run is the program: it does what the arguments say and returns the exit code.
func run(ctx context.Context, e env) int {
	c := &cli{env: e}
	root := c.root()
	err := mistyped(root, e.args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	return c.end(ctx, err)
}

// root is the command tree.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Network contracts for the workloads of a host, and the proof that they are kept",
		Example: `  weir check policy.yaml                     is the policy right?
  sudo weir doctor                           what can this host keep?
  sudo weir plan policy.yaml                 what would change?
  sudo weir apply --confirm 90s policy.yaml  change it; weir confirm keeps it
  sudo weir status                           is it kept?
  sudo weir reset                            the host as it was before`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SilenceErrors:     true, // printed once, by end
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // it answers a mistyped shell with help and 0
		Version:           version(),
	}
	// cobra takes nil for the arguments of the process.
	root.SetArgs(append([]string{}, c.args...))
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.SetVersionTemplate("weir {{.Version}}\n")
	root.SetHelpFunc(c.printHelp)
	root.SetFlagErrorFunc(flagError)

	root.PersistentFlags().Var(oneOf(&c.color, "auto", "always", "never"), "color", "use colours: `WHEN` is auto, always or never")
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	root.Flags().Bool("version", false, "print the version")

	cobra.EnableCommandSorting = false // the order below is the order of use
	root.AddCommand(
		c.check(), c.plan(), c.apply(), c.confirm(), c.rollback(), c.reset(),
		c.launch(), c.set(), c.status(), c.top(), c.explain(), c.sockets(), c.cost(), c.steer(), c.vrf(), c.doctor(), c.lab(),
		c.schema(), c.version(), c.completion(), c.guard(), c.watchLinks(),
	)
	root.SetHelpCommand(c.help())
	tidy(root)
	return root
}

// tidy sets what holds for every command.
func tidy(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.Flags().SortFlags = false
	for _, sub := range cmd.Commands() {
		tidy(sub)
	}
}
