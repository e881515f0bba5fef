package agent

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// sweep tells sockets that were open before this generation who made them, as
// far as its rules ask, and makes running connections choose their TX queue anew
// where queues are picked by mqprio: there the choice is cached in the socket.
func (c *change) sweep(ctx context.Context, w *plan.Want, g *bpf.Generation) error {
	s, err := c.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.tagProcesses(ctx, s, w); err != nil {
		return err
	}
	tags, err := s.Tasks()
	if err != nil {
		return err
	}
	h, err := workload.FindHierarchies()
	if err != nil {
		return err
	}
	sticky := picksQueues(w.Links)
	who := func(p workload.Process) bpf.Identity {
		return identity(p, tags, w.Rules, h)
	}
	if !sticky && len(tags) == 0 && len(w.Rules.Exes) == 0 && w.Rules.Controller1 == "" {
		return nil
	}
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

// tagProcesses gives the processes that the policy names their tags, and takes
// those away whose contract is gone.
func (c *change) tagProcesses(ctx context.Context, s *bpf.Sockets, w *plan.Want) error {
	tags, err := s.Tasks()
	if err != nil {
		return err
	}
	alive := map[uint32]bool{}
	for _, contract := range w.Contracts {
		alive[contract.Tag()] = true
	}
	for pid, tag := range tags {
		if !alive[tag] {
			err = errors.Join(err, s.UntagTask(pid))
		}
	}
	for pid, name := range w.PIDs {
		_, more := tagTree(ctx, s, pid, w.Contracts[name].Tag())
		err = errors.Join(err, more)
	}
	return err
}

// tagTree tags a process and its descendants and returns them. The process comes
// first: what it forks from then on inherits, so the walk meets a shrinking rest.
func tagTree(ctx context.Context, s *bpf.Sockets, pid, tag uint32) ([]workload.Process, error) {
	if err := s.TagTask(pid, tag); err != nil {
		return nil, err
	}
	tree, err := workload.ProcessTree(ctx, pid)
	if errors.Is(err, workload.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, p := range tree {
		if err := s.TagTask(p.PID, tag); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// picksQueues reports whether any link's queue is picked before its qdisc sees
// the packet.
func picksQueues(links map[string]plan.LinkState) bool {
	for _, l := range links {
		if l.Queue.Scheduler == policy.MQPrio {
			return true
		}
	}
	return false
}

// prune forgets contracts of processes that are gone with all their children.
func (a *Agent) prune(r *state.Record) {
	gone := a.gone(r)
	r.Sets = slices.DeleteFunc(r.Sets, func(s state.Set) bool { return gone[s.Name] })
}

// gone names the sets whose process is gone with all its children.
func (a *Agent) gone(r *state.Record) map[string]bool {
	var tags map[uint32]uint32
	if s, err := a.room().Sockets(); err == nil {
		tags, _ = s.Tasks()
		s.Close()
	}
	used := map[uint32]bool{}
	for _, tag := range tags {
		used[tag] = true
	}
	gone := map[string]bool{}
	for _, set := range r.Sets {
		if set.Selector == nil && !used[r.IDs.Names[set.Name].Tag()] && !lives(set) {
			gone[set.Name] = true
		}
	}
	return gone
}

func lives(s state.Set) bool {
	p, err := workload.ReadProcess(s.PID)
	return err == nil && p.Start == s.Start
}
