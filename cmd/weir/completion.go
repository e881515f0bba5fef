package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// completionTime is how long a shell waits for us. What is not known by then is
// not offered, and nothing is said about it.
const completionTime = 120 * time.Millisecond

// completion prints the script that makes a shell ask weir for completions. It
// stands in for cobra's own command.
func (c *cli) completion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the completion script of a shell",
		Example: `  weir completion bash > /etc/bash_completion.d/weir
  weir completion zsh > "${fpath[1]}/_weir"
  weir completion fish > ~/.config/fish/completions/weir.fish`,
		Args:              exactly("SHELL"),
		ValidArgsFunction: first(shells...),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(c.stdout, true)
			case "zsh":
				return root.GenZshCompletion(c.stdout)
			case "fish":
				return root.GenFishCompletion(c.stdout, true)
			}
			return &usageError{fmt.Sprintf("no completion for %q", args[0]), didYouMean(args[0], shells, "")}
		},
	}
}

// first completes the first argument by a few words.
func first(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// policyFiles completes the first argument by the policy files that are there.
func policyFiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// inTime asks for words, and gives up silently when that takes too long or does
// not work.
func (c *cli) inTime(ask func(context.Context) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(context.Background(), c.completeIn)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		words, err := ask(ctx)
		if err != nil {
			words = nil
		}
		found <- words
	}()
	select {
	case words := <-found:
		return words
	case <-ctx.Done():
		return nil
	}
}

// completeRate completes the unit of a number.
func completeRate(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if _, err := policy.ParseRate(typed + "Gbit"); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{typed + "Kbit", typed + "Mbit", typed + "Gbit"}, cobra.ShellCompDirectiveNoFileComp
}

// completeSize completes the unit of a number of bytes.
func completeSize(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if _, err := policy.ParseSize(typed + "GiB"); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{typed + "KiB", typed + "MiB", typed + "GiB"}, cobra.ShellCompDirectiveNoFileComp
}

// completeUnit completes the units that run.
func (c *cli) completeUnit(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.inTime(func(ctx context.Context) ([]string, error) {
		h, err := workload.FindHierarchies()
		if err != nil {
			return nil, err
		}
		for _, mount := range []string{h.V2, h.V1["name=systemd"]} {
			if mount == "" {
				continue
			}
			if names, err := workload.UnitNames(ctx, mount); len(names) > 0 || err != nil {
				return names, err
			}
		}
		return nil, nil
	}), cobra.ShellCompDirectiveNoFileComp
}

// completePriority completes the links of LINK=N,LINK=N.
func (c *cli) completePriority(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	done := typed[:strings.LastIndexByte(typed, ',')+1]
	if strings.Contains(typed[len(done):], "=") {
		return nil, directive
	}
	links := c.inTime(func(ctx context.Context) (names []string, err error) {
		scope, err := c.scope()
		if err != nil {
			return nil, err
		}
		err = host.InNetns(scope.Netns, func() error {
			links, err := host.Links(ctx)
			for name := range links {
				names = append(names, name)
			}
			return err
		})
		slices.Sort(names)
		return append(names, "default"), err
	})
	var words []string
	for _, l := range links {
		if !strings.Contains(","+done, ","+l+"=") {
			words = append(words, done+l+"=")
		}
	}
	return words, directive
}
