package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// help is cobra's help command, except that it tells a mistyped topic by its
// exit code.
func (c *cli) help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | exit-codes | man DIR]",
		Short: "Explain a command or the exit codes, or write the manual pages",
		Example: `  weir help check
  weir help exit-codes
  weir help man /usr/local/share/man/man1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			topics := map[string]func([]string) error{
				"exit-codes": func([]string) error { _, err := io.WriteString(c.stdout, exitCodes); return err },
				"man":        func(args []string) error { return c.man(cmd, args) },
			}
			if len(args) > 0 && topics[args[0]] != nil {
				return topics[args[0]](args[1:])
			}
			about, rest, _ := cmd.Root().Find(args)
			if len(rest) > 0 {
				known := append(subcommands(about), slices.Sorted(maps.Keys(topics))...)
				return &usageError{fmt.Sprintf("no help about %q", strings.Join(args, " ")), didYouMean(rest[0], known, "weir help")}
			}
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			about, rest, _ := cmd.Root().Find(args)
			if len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := subcommands(about)
			if len(args) == 0 {
				names = append(names, "exit-codes", "man")
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// printHelp is the --help of every command. It starts with examples.
func (c *cli) printHelp(cmd *cobra.Command, _ []string) {
	cmd.InitDefaultHelpFlag() // cobra adds it when a command runs, and help runs for others
	var b strings.Builder
	fmt.Fprintf(&b, "Examples:\n%s\n\n", strings.TrimRight(cmd.Example, "\n"))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", text, useLine(cmd))
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s  %s\n", cmd.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if flags := cmd.LocalFlags().FlagUsagesWrapped(min(c.columns(c.stdout), 80)); flags != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags)
	}
	if !cmd.HasParent() {
		b.WriteString("\nExit codes: weir help exit-codes\n")
	}
	fmt.Fprint(c.stdout, b.String())
}

func useLine(cmd *cobra.Command) string {
	switch {
	case cmd.HasAvailableSubCommands():
		return cmd.CommandPath() + " COMMAND [FLAGS]"
	case cmd.HasParent():
		return cmd.Parent().CommandPath() + " " + cmd.Use
	}
	return cmd.Use
}
