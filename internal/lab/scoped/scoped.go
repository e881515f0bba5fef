// Package scoped puts a lab's contracts into force with Weir's own agent, in a
// scope that is made for one run and thrown away after it. It is the lab's
// Controller; it knows nothing of experiments.
package scoped

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// A Controller is a throw-away scope: a cgroup, a pin directory, a record.
type Controller struct {
	agent *agent.Agent
}

// New makes a scope, and takes away what labs that were killed have left. Close
// removes it.
func New(version string) (*Controller, error) {
	h, err := workload.FindHierarchies()
	if err != nil {
		return nil, err
	}
	if h.V2 == "" {
		return nil, errors.New("make lab scope: no cgroup2 mount here (mount -t cgroup2 none /sys/fs/cgroup)")
	}
	for _, s := range leftovers(h.V2) {
		_ = remove(s) // what is still in use the next lab meets again
	}
	cgroup, err := os.MkdirTemp(h.V2, fmt.Sprintf("%s%d-", prefix, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("make cgroup of lab scope: %w", err)
	}
	return &Controller{&agent.Agent{Scope: scope(h.V2, filepath.Base(cgroup)), Version: version}}, nil
}

// Close removes the scope and what is in it, also after a reset that failed. The
// links are gone by then: their queues went with them.
func (c *Controller) Close() error { return remove(c.agent.Scope) }

// Apply puts a policy into force on the links in a network namespace.
func (c *Controller) Apply(ctx context.Context, netns string, text []byte) error {
	p, err := policy.Parse("lab.yaml", text)
	if err != nil {
		return err
	}
	c.agent.Scope.Netns = netns
	_, err = c.agent.Apply(ctx, p, text)
	return err
}

// Set gives a process a level on all links.
func (c *Controller) Set(ctx context.Context, pid int, level policy.Level) error {
	return c.agent.Set(ctx, uint32(pid), agent.Terms{Priority: &policy.Priority{Default: level}})
}

// Clear takes back what Set gave.
func (c *Controller) Clear(ctx context.Context, pid int) error {
	return c.agent.Clear(ctx, uint32(pid))
}

// Reset takes everything back; the scope stays.
func (c *Controller) Reset(ctx context.Context) error { return c.agent.Reset(ctx) }

// ClassCounters reads what the classes of a link have sent.
func (c *Controller) ClassCounters(_ context.Context, link string) ([]lab.ClassCount, error) {
	l, err := c.agent.Class(link)
	if err != nil {
		return nil, err
	}
	counts := make([]lab.ClassCount, len(l))
	for i, class := range l {
		counts[i] = lab.ClassCount{
			Class: class.Class, Levels: class.Levels, Packets: class.Packets, Bytes: class.Bytes, Backlog: class.Backlog, Floor: class.Floor,
		}
	}
	return counts, nil
}

// Rung names the mechanism that keeps the order on a link.
func (c *Controller) Rung(link string) string { return c.agent.Rung(link) }

// Dropped counts what the limits of the policy have dropped.
func (c *Controller) Dropped() (uint64, error) { return c.agent.Dropped() }

// NoLimits says what the kernel lacks to hold limits by a method.
func (c *Controller) NoLimits(ctx context.Context, by policy.Method) string {
	return c.agent.NoLimit(ctx, by)
}

// NoReceiving says what the kernel lacks to hold what workloads receive by a method.
func (c *Controller) NoReceiving(ctx context.Context, by policy.Method) string {
	return c.agent.NoReceiving(ctx, by)
}

// Cgroup is the directory for the cgroups of workloads.
func (c *Controller) Cgroup() string { return c.agent.Scope.Cgroup }
