package agent

import "github.com/weir-net/weir/internal/plan"

// addReceive adds the steps that hold what reaches sockets to its limits, or end that.
func (c *change) addReceive(w *plan.Want) {
	if len(w.Rules.Arriving) == 0 {
		if c.room().ReceiveAttached() {
			c.add("detach socket_ingress", c.room().DetachReceive)
		}
		return
	}
	c.add("load socket_ingress", func() error { return c.generation.LoadReceive(w.Rules, w.IDs.Names) })
	c.add("attach socket_ingress", func() error { return c.generation.AttachReceive() })
}
