package agent

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/workload"
)

// adoptOpen brings connections that are open already below the bounds of a generation,
// which holds those to come by then. It returns bpf.ErrTooLate where the kernel does not
// tell of what they do: then each was fitted once to its even part or, where no program
// may do that either (before 5.15), nothing bounds them.
func (a *Agent) adoptOpen(g *bpf.Generation) error {
	o, err := memoryOptions()
	if err != nil {
		return err
	}
	scope, err := workload.CgroupID(a.Scope.Cgroup)
	if err != nil {
		return err
	}
	adoption, err := g.Adoption(scope, o)
	if err != nil {
		return err
	}
	defer adoption.Close()
	late := false
	err = inEachNamespace(func() error {
		err := adoption.Adopt()
		if errors.Is(err, bpf.ErrTooLate) {
			late, err = true, nil
		}
		return err
	})
	if err != nil || !late {
		return err
	}
	if err := inEachNamespace(adoption.Squeeze); err != nil {
		return err
	}
	return bpf.ErrTooLate
}

// giveBuffersBack ends all bounds: connections get the buffers back that TCP or their
// application had given them, and nothing fits them any more. It returns
// workload.ErrLocked where the kernel does not let TCP have a buffer again that was set:
// such a buffer stays as it is, or as large as it was before where that is more.
func (a *Agent) giveBuffersBack(ctx context.Context) error {
	s, err := a.room().Sockets()
	if errors.Is(err, bpf.ErrAbsent) || errors.Is(err, bpf.ErrOtherVersion) {
		return a.room().DetachMemory() // nothing that we know of was bounded
	}
	if err != nil {
		return err
	}
	defer s.Close()
	// First the pools: what is given back after that is not taken away again.
	if err := s.ForgetPools(); err != nil {
		return err
	}
	err = a.looseBuffers(ctx, s)
	if err != nil && !errors.Is(err, workload.ErrLocked) {
		return err
	}
	return errors.Join(err, a.room().DetachMemory())
}

// looseBuffers gives connections their buffers back that no bound holds any more, all that
// a process has open and lets us see. The others keep theirs, and so do those that MPTCP
// has below a socket. It returns workload.ErrLocked as giveBuffersBack does.
func (a *Agent) looseBuffers(ctx context.Context, s *bpf.Sockets) error {
	locked := false
	err := workload.EachSocket(ctx, nil, func(_ workload.Process, socket workload.Socket) error {
		if socket.Protocol != unix.IPPROTO_TCP {
			return nil
		}
		h, known := s.Holding(socket.FD)
		if !known || h.Bound {
			return nil
		}
		// First forgotten: so it is not fitted once more meanwhile.
		if err := s.ForgetHolding(socket.FD); err != nil {
			return err
		}
		for b, was := range map[*workload.Buffer]bpf.HeldBuffer{&workload.SendBuffer: h.Send, &workload.ReceiveBuffer: h.Receive} {
			err := giveBack(b, socket.FD, was)
			if errors.Is(err, workload.ErrLocked) {
				locked = true
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrPermission) { // all others are done
		err = nil
	}
	if err == nil {
		err = inEachNamespace(s.ForgetHoldings)
	}
	if errors.Is(err, bpf.ErrTooLate) {
		err = nil // nobody is below a bound by what is left
	}
	if err == nil && locked {
		err = workload.ErrLocked
	}
	return err
}

// giveBack makes a buffer what it was before it was fitted. What is not as it was fitted,
// the application has set since.
func giveBack(b *workload.Buffer, fd int, was bpf.HeldBuffer) error {
	if was.Given == 0 {
		return nil
	}
	is, err := b.Size(fd)
	if err != nil || is != was.Given {
		return err
	}
	if was.Set || was.Own > is {
		if err := b.SetSize(fd, was.Own); err != nil || was.Set {
			return err
		}
	}
	return b.Unlock(fd)
}
