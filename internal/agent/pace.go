package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// pace lets a generation pace connections: those to come, and those that are open
// where the kernel can still be asked about them. The others are held by drops.
func (a *Agent) pace(g *bpf.Generation) error {
	before := a.room().PaceAttached()
	if err := g.AttachPace(); err != nil || before {
		return err
	}
	namespaces, err := workload.Namespaces()
	if err != nil {
		return err
	}
	for _, path := range namespaces {
		err := host.InNetns(path, bpf.Enlist)
		switch {
		case errors.Is(err, bpf.ErrTooLate):
			return nil
		case errors.Is(err, fs.ErrNotExist): // its process has ended
		case err != nil:
			return err
		}
	}
	return nil
}

// addUnpace adds the step that gives connections their own pace back, after the
// last limit is gone: those that a process has open. What was closed and still
// sends its last bytes sends them as it was paced.
func (c *change) addUnpace(ctx context.Context) {
	if !c.room().PaceAttached() {
		return
	}
	c.add("give connections their own pace back", func() error { return c.unpace(ctx) })
}

func (a *Agent) unpace(ctx context.Context) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	err = workload.EachSocket(ctx, nil, func(_ workload.Process, socket workload.Socket) error {
		if socket.Protocol != unix.IPPROTO_TCP {
			return nil
		}
		own, paced := s.Pace(socket.FD)
		if !paced {
			return nil
		}
		// Forgotten first: pace would set it anew.
		if err := s.ForgetPace(socket.FD); err != nil {
			return err
		}
		return workload.SetPace(socket.FD, own)
	})
	if err != nil {
		return err
	}
	return a.room().DetachPace()
}

// unpaceLast is unpace, where no contract of a generation has a limit any more.
func (a *Agent) unpaceLast(ctx context.Context, g *bpf.Generation) error {
	if !a.room().PaceAttached() {
		return nil
	}
	if left, err := g.HasLimits(); err != nil || left {
		return err
	}
	return a.unpace(ctx)
}

// limit holds a contract of a generation that is in force to a limit, and paces
// connections from the first one on.
func (a *Agent) limit(g *bpf.Generation, id plan.ContractID, l plan.Limit) error {
	if err := g.SetLimit(id, l); err != nil {
		return err
	}
	if a.room().PaceAttached() {
		return nil
	}
	return a.pace(g)
}

// canLimit returns ErrNoLimits where this kernel can not hold a limit.
func (a *Agent) canLimit(ctx context.Context) error {
	return a.inScope(func() error {
		if lacks := a.features(ctx).NoLimits(); len(lacks) > 0 {
			return fmt.Errorf("%w: %s", ErrNoLimits, lacks[0])
		}
		return nil
	})
}

// held reads what became of the packets of limited contracts.
func (a *Agent) held(r *state.Record) (map[plan.ContractID]plan.Held, error) {
	g, err := a.room().Open(r.Generation)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Held()
}
