package agent

import (
	"context"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// sweep tells sockets that were open before this generation who made them, as
// far as its rules ask, and makes running connections choose their TX queue anew
// where queues are picked by mqprio: there the choice is cached in the socket.
func (c *change) sweep(ctx context.Context, w *plan.Want) error {
	s, err := c.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.tagMembers(ctx, s, w); err != nil {
		return err
	}
	tags, err := s.Tasks()
	if err != nil {
		return err
	}
	sticky := picksQueues(c.record)
	if !sticky && len(tags) == 0 && len(w.Rules.Exes) == 0 && w.Rules.Controller1 == "" {
		return nil
	}
	h, err := workload.FindHierarchies()
	if err != nil {
		return err
	}
	who := func(p workload.Process) bpf.Identity { return identity(p, tags, w.Rules, h) }
	concerns := func(p workload.Process) bool { return sticky || who(p) != bpf.Identity{} }
	return workload.EachSocket(ctx, concerns, func(p workload.Process, socket workload.Socket) error {
		if err := identify(s, socket, who(p)); err != nil {
			return err
		}
		if sticky && socket.Protocol == unix.IPPROTO_TCP {
			return workload.ResetRoute(socket.FD)
		}
		return nil
	})
}

// identify adds what is known of a process to its socket. What the socket knows
// of its maker stays: it may have been passed on.
func identify(s *bpf.Sockets, socket workload.Socket, who bpf.Identity) error {
	have, err := s.Identity(socket.FD)
	if err != nil {
		return err
	}
	next := have
	if who.Tag != 0 {
		next.Tag = who.Tag
	}
	if have.Exe == (plan.ExeID{}) {
		next.Exe = who.Exe
	}
	if who.Cgroup1 != 0 {
		next.Cgroup1 = who.Cgroup1
	}
	_, err = s.Identify(socket.FD, next)
	return err
}

// identity is what rules ask of a process.
func identity(p workload.Process, tags map[uint32]uint32, r plan.Rules, h workload.Hierarchies) bpf.Identity {
	i := bpf.Identity{Tag: tags[p.PID]}
	if _, ok := r.Exes[p.Exe.ID]; ok {
		i.Exe = p.Exe.ID
	}
	if r.Controller1 == "" {
		return i
	}
	mount, _ := h.Mount(r.Controller1)
	id, err := workload.CgroupID(filepath.Join(mount, p.Cgroup1[r.Controller1]))
	if _, claimed := r.Cgroups1[id]; err == nil && claimed {
		i.Cgroup1 = id
	}
	return i
}
