package agent

import (
	"context"
	"errors"
	"maps"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// addMemory adds the steps that hold what sockets have of TCP memory to its bounds, or end
// that.
func (c *change) addMemory(ctx context.Context, w *plan.Want) {
	if len(w.Rules.Memory) == 0 {
		c.endMemory(ctx)
		return
	}
	c.add("load tcp_memory", func() error {
		o, err := memoryOptions()
		if err != nil {
			return err
		}
		return c.generation.LoadMemory(w.Rules, w.IDs.Names, o)
	})
	c.add("attach tcp_memory", func() error { return c.generation.AttachMemory() })
	c.add("bound connections that are open", func() error { return tolerable(c.adoptOpen(c.generation)) })
}

// memoryOptions is what tcp_memory has to know of this host.
func memoryOptions() (o bpf.MemoryOptions, err error) {
	o.Send, o.Receive, err = workload.LargestBuffers()
	return o, err
}

// addMemoryOfMakers adds the step that bounds connections that were open before, and
// that know only by now whose they are.
func (c *change) addMemoryOfMakers(w *plan.Want) {
	if len(w.Rules.Memory) > 0 && (len(w.PIDs) > 0 || len(w.Rules.Exes) > 0 || w.Rules.Controller1 != "") {
		c.add("bound connections whose maker they have been told", func() error { return tolerable(c.adoptOpen(c.generation)) })
	}
}

// endMemory adds the steps that end what addMemory begins.
func (c *change) endMemory(ctx context.Context) {
	if c.room().MemoryAttached() {
		c.add("give connections their own buffers back", func() error { return tolerable(c.giveBuffersBack(ctx)) })
	}
}

// tolerable is an error other than that the kernel can not do all of it with connections that
// are open: what it can is done then.
func tolerable(err error) error {
	if errors.Is(err, bpf.ErrTooLate) || errors.Is(err, workload.ErrLocked) {
		return nil
	}
	return err
}

// settle makes limits and bounds those of the generation that is being built, and forgets all
// others: what no bound holds any more gets its buffers back.
func (c *change) settle(ctx context.Context, w *plan.Want) error {
	if err := c.generation.SettleLimits(); err != nil {
		return err
	}
	gone, err := c.generation.SettleMemory(w.Rules, w.IDs.Names)
	if err != nil || !gone {
		return err
	}
	return c.looseBound(ctx)
}

// bound holds what the TCP sockets of a contract have in memory to its bound, in a
// generation that is in force. Those that are open follow by followBounds.
func (a *Agent) bound(g *bpf.Generation, c plan.Contract, m policy.TCPMemory, all map[string]plan.Contract) error {
	o, err := memoryOptions()
	if err != nil {
		return err
	}
	return g.SetBound(c, m, all, o)
}

// followBounds has connections that are open follow where weir set has changed their bounds,
// or whose they are: below none they get their buffers back.
func (a *Agent) followBounds(ctx context.Context, g *bpf.Generation) error {
	if !a.room().MemoryAttached() {
		return nil
	}
	rules, err := g.Rules()
	if err != nil {
		return err
	}
	if len(rules.Memory) == 0 {
		return tolerable(a.giveBuffersBack(ctx))
	}
	if err := tolerable(a.adoptOpen(g)); err != nil {
		return err
	}
	return a.looseBound(ctx)
}

// looseBound gives connections their buffers back that no bound holds any more, as far as
// the kernel lets that be.
func (a *Agent) looseBound(ctx context.Context) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	return tolerable(a.looseBuffers(ctx, s))
}

// pools reads what the sockets below each bound of memory hold.
func (a *Agent) pools(r *state.Record) (map[plan.ContractID]plan.Pool, error) {
	g, err := a.open(r)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	pools, err := g.Pools(r.IDs.Names)
	if err != nil {
		return nil, err
	}
	_, held, err := a.readMemcg(r)
	maps.Copy(pools, held)
	return pools, err
}
