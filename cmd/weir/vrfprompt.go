package main

import (
	_ "embed" // the snippets
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The snippets start no process for a prompt: they read /proc/self/cgroup, and compare
// /proc/self/ns/net with what is in /run/netns, in the shell itself.
var (
	//go:embed prompt/bash.sh
	promptBash string
	//go:embed prompt/zsh.zsh
	promptZsh string
	//go:embed prompt/fish.fish
	promptFish string
)

func (c *cli) vrfPrompt() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "prompt bash|zsh|fish",
		Short: "Print what makes a shell show its network namespace and VRF",
		Long: `Print what makes a shell show its network namespace, if that has a name, and its
VRF after the host's name in its prompt, as in user@host:blue:mgmt:~$. It starts
no process for a prompt. A VRF is shown that weir vrf exec or ip vrf exec entered.`,
		Example: `  eval "$(weir vrf prompt bash)"              in ~/.bashrc, after PS1 is set
  eval "$(weir vrf prompt zsh)"               in ~/.zshrc, after PROMPT is set
  weir vrf prompt fish | source               in ~/.config/fish/config.fish`,
		Args:              exactly("SHELL"),
		ValidArgsFunction: first(shells...),
		RunE: func(_ *cobra.Command, args []string) error {
			text, ok := map[string]string{"bash": promptBash, "zsh": promptZsh, "fish": promptFish}[args[0]]
			if !ok {
				return &usageError{fmt.Sprintf("no prompt for %q", args[0]), didYouMean(args[0], shells, "")}
			}
			_, err := io.WriteString(c.stdout, text)
			return err
		},
	}
}
