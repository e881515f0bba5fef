package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// SetBound changes what the TCP sockets of a contract may hold, at once, of a generation
// that is in force: the zero value is no bound. The first one brings tcp_memory, which
// all contracts are told to. Connections that are open follow by an Adoption, and the programs
// stay until they are detached. It returns ErrFull.
func (g *Generation) SetBound(c plan.Contract, m policy.TCPMemory, all map[string]plan.Contract, o MemoryOptions) error {
	t, err := g.openBounds()
	if errors.Is(err, ErrAbsent) && m.Max != 0 {
		t, err = g.bringMemory(all, o)
	}
	if errors.Is(err, ErrAbsent) {
		return g.removePools(c.ID) // of a first bound that was broken off
	}
	if err != nil {
		return err
	}
	pools, err := g.pools()
	if err != nil {
		return err
	}
	if err := g.putBound(t.bounds, t.contracts, c, m, pools[c].made); err != nil {
		return err
	}
	if m.Max == 0 {
		if err := g.removePools(c.ID); err != nil {
			return err
		}
	}
	left, err := g.bounds()
	if err != nil || len(left) == 0 {
		return err
	}
	if err := g.fitRefusals(refuses(left)); err != nil {
		return err
	}
	if runs, err := g.HoldsMemory(); err != nil || runs {
		return err
	}
	return g.AttachMemory()
}

// bringMemory loads tcp_memory for a generation in force.
func (g *Generation) bringMemory(all map[string]plan.Contract, o MemoryOptions) (*boundTables, error) {
	rules, err := g.Rules()
	if err != nil {
		return nil, err
	}
	if err := g.LoadMemory(rules, all, o); err != nil {
		return nil, err
	}
	return g.openBounds()
}

// fitRefusals loads what refuses connections, or takes it away where none is to be refused
// any more.
func (g *Generation) fitRefusals(wanted bool) error {
	t, err := g.openBounds()
	if err != nil {
		return err
	}
	if has := len(t.programs) == len(memoryHooks); has == wanted {
		return nil
	}
	// Some of them may be there, of a set that was broken off.
	for name := range memoryHooks {
		if name == tcpMemoryProgTcpMemory {
			continue
		}
		if err := os.Remove(filepath.Join(g.memoryDir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	if wanted {
		if err := g.loadRefuse(t.bounds, t.contracts); err != nil {
			return err
		}
	}
	t.Close()
	g.bounded = nil
	return nil
}
