package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/workload"
)

// keepReach refuses a change after which somebody may not reach the host any more: one of the
// link that carries the ssh session of the one who asks for it, or one that moves the last
// default route into another routing domain.
func (c *cli) keepReach(a *agent.Agent, proposed agent.Proposal, file string) error {
	if err := c.keepSSH(a, proposed, file); err != nil {
		return err
	}
	if link := proposed.CutsOff; link != "" {
		return risky(fmt.Errorf("apply: link %s: %w", link, agent.ErrCutOff), file)
	}
	return nil
}

// risky says how a change is made that may cut somebody off.
func risky(err error, file string) error {
	return &hinted{err, []string{
		shellLine([]string{"weir", "apply", "--confirm", "90s", file}) + "   takes all back unless you confirm it",
		shellLine([]string{"weir", "apply", "--accept-risk=lose-ssh", file}) + "   does not",
	}}
}

func (c *cli) keepSSH(a *agent.Agent, proposed agent.Proposal, file string) error {
	client, server, ok := c.sshEnds()
	if !ok {
		return nil
	}
	var carriers []string
	err := host.InNetns(a.Scope.Netns, func() (err error) {
		carriers, err = host.Carriers(client, server)
		return err
	})
	if err != nil {
		c.warn("which link carries your ssh session is not known: %v", err)
		return nil
	}
	touched := slices.Clone(proposed.Moves)
	for _, d := range proposed.Differences {
		if name, isLink := strings.CutPrefix(d.Object, "link "); isLink {
			touched = append(touched, name)
		}
	}
	for _, name := range touched {
		if slices.Contains(carriers, name) {
			return risky(fmt.Errorf("apply: link %s: %w (from %s)", name, agent.ErrLoseSSH, client), file)
		}
	}
	return nil
}

// sshEnds are the addresses at the other end of the ssh session, and at this one, if there is a session.
// sudo drops the variable that says so; the processes above have it still.
func (c *cli) sshEnds() (client, server netip.Addr, ok bool) {
	if client, server, ok := parseSSH(c.getenv("SSH_CONNECTION")); ok {
		return client, server, true
	}
	pid := uint32(os.Getppid())
	for range 64 { // more than any chain of shells, and an end if /proc changes meanwhile
		p, err := workload.ReadProcess(pid)
		if err != nil {
			break
		}
		if client, server, ok := parseSSH(environment(pid)["SSH_CONNECTION"]); ok {
			return client, server, true
		}
		if pid = p.Parent; pid <= 1 {
			break
		}
	}
	return client, server, false
}

// environment is the environment with which a process was started, as far as we
// may look.
func environment(pid uint32) map[string]string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	vars := map[string]string{}
	for entry := range strings.SplitSeq(string(text), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			vars[name] = value
		}
	}
	return vars
}

// parseSSH reads "CLIENT PORT SERVER PORT". A server that can not be read is the zero Addr.
func parseSSH(text string) (client, server netip.Addr, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return client, server, false
	}
	client, err := netip.ParseAddr(fields[0])
	server, _ = netip.ParseAddr(fields[2])
	return client, server, err == nil
}
