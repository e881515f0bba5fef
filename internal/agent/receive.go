package agent

import (
	"context"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
)

// addReceive adds the steps that hold what reaches sockets to its limits, or end that.
func (c *change) addReceive(ctx context.Context, w *plan.Want) {
	if len(w.Rules.Arriving) == 0 {
		c.endReceive(ctx)
		return
	}
	c.add("load socket_ingress", func() error { return c.generation.LoadReceive(w.Rules, w.IDs.Names) })
	c.add("attach socket_ingress", func() error { return c.generation.AttachReceive() })
	c.add("have connections ask for their share", func() error { return c.restrain(windowing, c.generation) })
}

// endReceive adds the steps that end what addReceive begins.
func (c *change) endReceive(ctx context.Context) {
	if c.room().ReceiveAttached() {
		c.add("detach socket_ingress", c.room().DetachReceive)
	}
	c.addLift(ctx, windowing)
}

// receive holds what the sockets of a contract may receive to a limit, in a generation
// that is in force, and has connections ask for no more from the first one on.
func (a *Agent) receive(g *bpf.Generation, c plan.Contract, l plan.Limit, all map[string]plan.Contract) error {
	if err := g.SetArriving(c, l, all); err != nil {
		return err
	}
	if l == (plan.Limit{}) || a.room().WindowAttached() {
		return nil
	}
	return a.restrain(windowing, g)
}
