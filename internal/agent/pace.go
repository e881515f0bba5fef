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
	// Before and after: whoever is killed in between has missed nobody.
	return errors.Join(a.eachNamespace((*bpf.Sockets).Enlist), g.AttachPace(), a.eachNamespace((*bpf.Sockets).Enlist))
}

// eachNamespace does something in each network namespace that has a process, as far
// as the kernel can: that it can not is no error.
func (a *Agent) eachNamespace(do func(*bpf.Sockets) error) error {
	err := a.tryEachNamespace(do)
	if errors.Is(err, bpf.ErrTooLate) {
		return nil
	}
	return err
}

func (a *Agent) tryEachNamespace(do func(*bpf.Sockets) error) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	namespaces, err := workload.Namespaces()
	if err != nil {
		return err
	}
	for _, path := range namespaces {
		err := host.InNetns(path, func() error { return do(s) })
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // its process has ended, or we may not look there
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addUnpace adds the step that gives connections their own pace back, after the
// last limit is gone.
func (c *change) addUnpace(ctx context.Context) {
	if !c.room().PaceAttached() {
		return
	}
	c.add("give connections their own pace back", func() error { return c.unpace(ctx) })
}

// unpace gives connections their own pace back and takes pace off. Kernels that let
// no program do the first are asked socket by socket, of those that a process has
// open and lets us see: what else sends its last bytes sends them as it was paced.
func (a *Agent) unpace(ctx context.Context) error {
	err := a.tryEachNamespace((*bpf.Sockets).Unpace)
	if errors.Is(err, bpf.ErrTooLate) {
		err = a.unpaceOneByOne(ctx)
	}
	if errors.Is(err, bpf.ErrAbsent) || errors.Is(err, bpf.ErrOtherVersion) {
		err = nil // nothing that we know of was paced
	}
	if err != nil {
		return err
	}
	return a.room().DetachPace()
}

func (a *Agent) unpaceOneByOne(ctx context.Context) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	err = workload.EachSocket(ctx, nil, func(_ workload.Process, socket workload.Socket) error {
		if socket.Protocol != unix.IPPROTO_TCP {
			return nil
		}
		own, pace := s.Pace(socket.FD)
		if found, err := workload.Pace(socket.FD); pace == 0 || err != nil || found != pace {
			return err // not ours, or the application has set another
		}
		// Twice: until it is forgotten, pace may set it anew.
		return errors.Join(workload.SetPace(socket.FD, own), s.ForgetPace(socket.FD), workload.SetPace(socket.FD, own))
	})
	if errors.Is(err, fs.ErrPermission) { // all others are done
		return nil
	}
	return err
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

// held reads what became of the packets below each limit.
func (a *Agent) held(r *state.Record) (map[plan.Owner]plan.Held, error) {
	g, err := a.room().Open(r.Generation)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Held()
}
