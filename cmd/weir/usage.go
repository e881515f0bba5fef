package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-net/weir/internal/policy"
)

// mistyped finds a word that should be a command and is none, at any level of
// the tree. It looks before cobra does, which answers some of them with the
// help of the level above and exit code 0, and others with an error about a
// flag that the command would have had.
func mistyped(root *cobra.Command, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil // the shell's request for completions
	}
	root.InitDefaultHelpCmd()
	group, rest, _ := root.Find(args)
	if !group.HasSubCommands() {
		return nil
	}
	word := firstWord(group, rest)
	if word == "" {
		return nil
	}
	return &usageError{
		message: fmt.Sprintf("%q is no command of %s", word, group.CommandPath()),
		help:    didYouMean(word, subcommands(group), group.CommandPath()+" --help"),
	}
}

// firstWord is the first argument that is neither a flag nor a flag's value.
func firstWord(cmd *cobra.Command, args []string) string {
	for i := 0; i < len(args); i++ {
		name, long := strings.CutPrefix(args[i], "--")
		switch {
		case long && name == "":
			return ""
		case long && !strings.Contains(name, "="):
			if flag := cmd.Flags().Lookup(name); flag != nil && flag.NoOptDefVal == "" {
				i++
			}
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		case !long && len(args[i]) == 2: // -n 2, not -n2
			if flag := cmd.Flags().ShorthandLookup(args[i][1:]); flag != nil && flag.NoOptDefVal == "" {
				i++
			}
		}
	}
	return ""
}

func subcommands(group *cobra.Command) []string {
	var names []string
	for _, cmd := range group.Commands() {
		if cmd.IsAvailableCommand() || cmd.Name() == "help" {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// didYouMean is the help for a wrong word: what is near to it, all that is
// possible, or else where that is told.
func didYouMean(word string, candidates []string, more string) string {
	const few = 6
	if near := policy.Suggest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(candidates) > 0 && len(candidates) <= few {
		return "possible here: " + strings.Join(candidates, ", ")
	}
	return more
}

// flagError turns what pflag says of a flag into what a user can use.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	more := cmd.CommandPath() + " --help"
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return &usageError{fmt.Sprintf("%s has no flag -%s", cmd.CommandPath(), name), more}
		}
		return &usageError{fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), name), suggestFlag(cmd, name, more)}
	case errors.As(err, &missing):
		flag := missing.GetFlag()
		what, _ := pflag.UnquoteUsage(flag)
		return &usageError{
			fmt.Sprintf("--%s needs a value", flag.Name),
			fmt.Sprintf("%s --%s %s", cmd.CommandPath(), flag.Name, what),
		}
	case errors.As(err, &invalid):
		why := invalid.Unwrap().Error()
		var (
			usage  *usageError
			number *strconv.NumError // of Go's own parsers, in Go's words
		)
		switch kind := invalid.GetFlag().Value.Type(); {
		case errors.As(err, &usage):
			more = usage.help
		case errors.As(err, &number) && kind == "bool":
			why = "not true or false"
		case errors.As(err, &number):
			why = "not a number, or too large"
		}
		return &usageError{fmt.Sprintf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), why), more}
	}
	return &usageError{err.Error(), more}
}

func suggestFlag(cmd *cobra.Command, name, more string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := policy.Suggest(name, names); near != "" {
		return fmt.Sprintf("did you mean --%s?", near)
	}
	return more
}

// nothing takes no arguments.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{
		fmt.Sprintf("%s takes no argument: %q", cmd.CommandPath(), args[0]),
		cmd.CommandPath() + " --help",
	}
}

// exactly takes one argument.
func exactly(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		use := cmd.CommandPath() + " " + name
		switch {
		case len(args) < 1:
			return &usageError{fmt.Sprintf("%s needs %s", cmd.CommandPath(), name), use}
		case len(args) > 1:
			return &usageError{fmt.Sprintf("%s has no use for %q", cmd.CommandPath(), args[1]), use}
		}
		return nil
	}
}

// upTo takes an argument or none.
func upTo(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exactly(name)(cmd, args)
	}
}

// atLeast takes one argument and whatever follows it.
func atLeast(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return &usageError{cmd.CommandPath() + " needs a " + name, useLine(cmd)}
	}
}

// A choice is a flag with a few possible values.
type choice struct {
	value    *string
	possible []string
}

// oneOf is a choice of which the first is the default.
func oneOf(value *string, possible ...string) *choice {
	*value = possible[0]
	return &choice{value, possible}
}

func (c *choice) String() string { return *c.value }

func (c *choice) Type() string { return "string" }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.possible, s) {
		return &usageError{"no such value", didYouMean(s, c.possible, "")}
	}
	*c.value = s
	return nil
}
