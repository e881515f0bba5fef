package agent

import (
	"context"
	"errors"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
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
		send, receive, err := workload.LargestBuffers()
		if err != nil {
			return err
		}
		return c.generation.LoadMemory(w.Rules, w.IDs.Names, bpf.MemoryOptions{Send: send, Receive: receive})
	})
	c.add("attach tcp_memory", func() error { return c.generation.AttachMemory() })
	c.add("bound connections that are open", func() error { return tolerable(c.adoptOpen(c.generation)) })
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
	s, err := c.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	return tolerable(c.looseBuffers(ctx, s))
}

// pools reads what the sockets below each bound of memory hold.
func (a *Agent) pools(r *state.Record) (map[plan.ContractID]plan.Pool, error) {
	g, err := a.room().Open(r.Generation)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Pools(r.IDs.Names)
}
