package agent

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// A restraint is a way in which TCP is told to hold back: by the pace of what it sends,
// or by the window that it offers to who sends.
type restraint struct {
	name     string
	attached func(bpf.Room) bool
	attach   func(*bpf.Generation) error
	detach   func(bpf.Room) error

	enlist, lift func(*bpf.Sockets) error // of all connections of a network namespace

	// Of one connection: what it had and was given, and the same to read, set and forget.
	given  func(s *bpf.Sockets, fd int) (own, given uint32)
	read   func(fd int) (uint32, error)
	set    func(fd int, own uint32) error
	forget func(s *bpf.Sockets, fd int) error
}

var (
	pacing = restraint{
		"pace", bpf.Room.PaceAttached, (*bpf.Generation).AttachPace, bpf.Room.DetachPace,
		(*bpf.Sockets).EnlistPace, (*bpf.Sockets).Unpace,
		(*bpf.Sockets).Pace, workload.Pace, workload.SetPace, (*bpf.Sockets).ForgetPace,
	}
	windowing = restraint{
		"window", bpf.Room.WindowAttached, (*bpf.Generation).AttachWindow, bpf.Room.DetachWindow,
		(*bpf.Sockets).EnlistWindow, (*bpf.Sockets).Unwindow,
		(*bpf.Sockets).Window, workload.Window, workload.SetWindow, (*bpf.Sockets).ForgetWindow,
	}
)

// restrain lets a generation hold connections back: those to come, and those that are
// open where the kernel can still be asked about them. The others are held by drops.
func (a *Agent) restrain(by restraint, g *bpf.Generation) error {
	// Before and after: whoever is killed in between has missed nobody.
	return errors.Join(a.eachNamespace(by.enlist), by.attach(g), a.eachNamespace(by.enlist))
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
	return inEachNamespace(func() error { return do(s) })
}

// addLift adds the step that gives connections back what they had, after the last limit
// is gone.
func (c *change) addLift(ctx context.Context, by restraint) {
	if by.attached(c.room()) {
		c.add("give connections their own "+by.name+" back", func() error { return c.lift(ctx, by) })
	}
}

// lift gives connections back what they had, and ends what holds them back. Kernels that
// let no program do the first are asked socket by socket, of those that a process has
// open and lets us see: what else sends its last bytes sends them as it was paced.
func (a *Agent) lift(ctx context.Context, by restraint) error {
	err := a.tryEachNamespace(by.lift)
	if errors.Is(err, bpf.ErrTooLate) {
		err = a.liftOneByOne(ctx, by)
	}
	if errors.Is(err, bpf.ErrAbsent) || errors.Is(err, bpf.ErrOtherVersion) {
		err = nil // nothing that we know of was held back
	}
	if err != nil {
		return err
	}
	return by.detach(a.room())
}

func (a *Agent) liftOneByOne(ctx context.Context, by restraint) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	err = workload.EachSocket(ctx, nil, func(_ workload.Process, socket workload.Socket) error {
		if socket.Protocol != unix.IPPROTO_TCP {
			return nil
		}
		own, given := by.given(s, socket.FD)
		if found, err := by.read(socket.FD); given == 0 || err != nil || found != given {
			return err // not ours, or somebody has set another
		}
		// Twice: until it is forgotten, it may be set anew.
		return errors.Join(by.set(socket.FD, own), by.forget(s, socket.FD), by.set(socket.FD, own))
	})
	if errors.Is(err, fs.ErrPermission) { // all others are done
		return nil
	}
	return err
}

// liftLast is lift, where no contract of a generation has a limit any more: of what it
// sends, and of what it receives.
func (a *Agent) liftLast(ctx context.Context, g *bpf.Generation) error {
	if a.room().WindowAttached() && !a.room().ReceiveAttached() {
		if err := a.lift(ctx, windowing); err != nil {
			return err
		}
	}
	if !a.room().PaceAttached() {
		return nil
	}
	if left, err := g.HasLimits(); err != nil || left {
		return err
	}
	return a.lift(ctx, pacing)
}

// limit holds a contract of a generation that is in force to a limit, and paces
// connections from the first one on that is held so.
func (a *Agent) limit(g *bpf.Generation, id plan.ContractID, l plan.Limit) error {
	if err := g.SetLimit(id, l); err != nil {
		return err
	}
	if l.Departs || a.room().PaceAttached() {
		return nil
	}
	return a.restrain(pacing, g)
}

// held reads what became of the packets below each limit.
func (a *Agent) held(r *state.Record) (map[plan.Owner]plan.Held, error) {
	g, err := a.open(r)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Held()
}

// Dropped counts the packets that the limits of the policy have dropped, since it gave or changed them.
func (a *Agent) Dropped() (packets uint64, err error) {
	r, err := a.Scope.Load()
	if err != nil {
		return 0, err
	}
	if r.Generation == 0 {
		return 0, ErrNothingApplied
	}
	held, err := a.held(r)
	for _, h := range held {
		packets += h.Dropped
	}
	return packets, err
}
