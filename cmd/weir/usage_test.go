package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// tree is a command tree with a group two levels down.
func tree() *cobra.Command {
	run := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "weir", RunE: run}
	root.PersistentFlags().String("color", "auto", "")
	root.Flags().Bool("version", false, "")
	lab := &cobra.Command{Use: "lab", RunE: run}
	lab.AddCommand(&cobra.Command{Use: "list", RunE: run}, &cobra.Command{Use: "run", RunE: run})
	lab.Flags().IntP("times", "n", 0, "")
	root.AddCommand(lab, &cobra.Command{Use: "check", RunE: run})
	return root
}

func TestMistyped(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "",
		"check":                      "",
		"check chekc":                "", // a file may have that name
		"lab run ssh":                "",
		"--color never check":        "",
		"--version":                  "",
		"--help":                     "",
		"__complete chekc":           "",
		"chekc":                      `"chekc" is no command of weir; did you mean "check"?`,
		"chekc --help":               `"chekc" is no command of weir; did you mean "check"?`,
		"--color never chekc":        `"chekc" is no command of weir; did you mean "check"?`,
		"--color=never chekc":        `"chekc" is no command of weir; did you mean "check"?`,
		"--nope -x chekc":            `"chekc" is no command of weir; did you mean "check"?`,
		"--version chekc":            `"chekc" is no command of weir; did you mean "check"?`,
		"lab lisst":                  `"lisst" is no command of weir lab; did you mean "list"?`,
		"lab lisst --json":           `"lisst" is no command of weir lab; did you mean "list"?`,
		"lab --color never rnu":      `"rnu" is no command of weir lab; did you mean "run"?`,
		"lab frobnicate":             `"frobnicate" is no command of weir lab; possible here: list, run`,
		"lab --json -- lisst":        "", // an argument of the group itself, which refuses it
		"check --color never -- lab": "",
		"lab -n 2":                   "",
		"lab -n 2 lisst":             `"lisst" is no command of weir lab; did you mean "list"?`,
		"lab -n2 lisst":              `"lisst" is no command of weir lab; did you mean "list"?`,
	} {
		err := mistyped(tree(), strings.Fields(args))
		got := ""
		var usage *usageError
		if errors.As(err, &usage) {
			got = usage.message + "; " + usage.help
		} else if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", args, got, want)
		}
	}
}

// Every command that has others below it must run, or cobra answers it with
// help and exit code 0; every one explains itself by examples.
func TestEveryCommand(t *testing.T) {
	c := &cli{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.RunE == nil {
			t.Errorf("%s does not run", cmd.CommandPath())
		}
		if cmd.Example == "" || cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: example %q, short %q", cmd.CommandPath(), cmd.Example, cmd.Short)
		}
		if cmd.Args == nil && cmd.Name() != "help" {
			t.Errorf("%s does not check its arguments", cmd.CommandPath())
		}
		for _, flag := range []string{"json"} {
			if f := cmd.Flags().Lookup(flag); f != nil && f.NoOptDefVal != "true" {
				t.Errorf("%s: --%s takes a value", cmd.CommandPath(), flag)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(c.root())
}
