package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
)

// agent is the one who changes and reads this host.
func (c *cli) agent() (*agent.Agent, error) {
	scope, err := c.scope()
	if err != nil {
		return nil, err
	}
	return &agent.Agent{Scope: scope, Version: version(), Now: c.now, Detach: c.detach(scope)}, nil
}

// privileged is the agent for a command that can not work without privileges.
func (c *cli) privileged(cmd *cobra.Command) (*agent.Agent, error) {
	missing, err := host.MissingCapabilities()
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, c.unprivileged(cmd, missing)
	}
	return c.agent()
}

// unprivileged is the refusal, with two ways to what is missing.
func (c *cli) unprivileged(cmd *cobra.Command, missing []string) error {
	return coded{code: exitPrivilege, error: &hinted{
		error: fmt.Errorf("%s needs %s", cmd.CommandPath(), strings.Join(missing, ", ")),
		help: []string{
			"sudo " + c.commandLine(),
			"or from a root shell (su -, doas, run0): " + c.commandLine(),
		},
	}}
}
