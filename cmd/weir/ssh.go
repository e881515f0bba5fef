package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// keepSSH refuses a change of a link that carries the ssh session of the one who
// asks for it.
func (c *cli) keepSSH(a *agent.Agent, changes []plan.Difference, file string) error {
	client, ok := c.sshClient()
	if !ok {
		return nil
	}
	var carriers []string
	err := host.InNetns(a.Scope.Netns, func() (err error) {
		carriers, err = host.Carriers(client)
		return err
	})
	if err != nil {
		c.warn("which link carries your ssh session is not known: %v", err)
		return nil
	}
	for _, d := range changes {
		name, isLink := strings.CutPrefix(d.Object, "link ")
		if isLink && slices.Contains(carriers, name) {
			return &hinted{fmt.Errorf("apply: link %s: %w (from %s)", name, agent.ErrLoseSSH, client), []string{
				shellLine([]string{"weir", "apply", "--confirm", "90s", file}) + "   takes all back unless you confirm it",
				shellLine([]string{"weir", "apply", "--accept-risk=lose-ssh", file}) + "   does not",
			}}
		}
	}
	return nil
}

// sshClient is the address at the other end of the ssh session, if there is one.
// sudo drops the variable that says so; the processes above have it still.
func (c *cli) sshClient() (netip.Addr, bool) {
	if client, ok := parseSSH(c.getenv("SSH_CONNECTION")); ok {
		return client, true
	}
	pid := uint32(os.Getppid())
	for range 64 { // more than any chain of shells, and an end if /proc changes meanwhile
		p, err := workload.ReadProcess(pid)
		if err != nil {
			break
		}
		if client, ok := parseSSH(environment(pid)["SSH_CONNECTION"]); ok {
			return client, true
		}
		if pid = p.Parent; pid <= 1 {
			break
		}
	}
	return netip.Addr{}, false
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

// parseSSH reads "CLIENT PORT SERVER PORT".
func parseSSH(text string) (netip.Addr, bool) {
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return netip.Addr{}, false
	}
	client, err := netip.ParseAddr(fields[0])
	return client, err == nil
}
