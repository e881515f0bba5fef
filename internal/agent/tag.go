package agent

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// tag marks a process, its descendants and all their sockets. The sockets are
// looked through until none is new: one may be born between two looks, and from
// the first tag on each is born with it.
func (a *Agent) tag(ctx context.Context, pid, tag uint32, sticky bool) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	tree, err := tagTree(ctx, s, pid, tag)
	if err != nil {
		return err
	}
	for changed := true; changed; {
		changed = false
		for _, p := range tree {
			more, err := a.retag(s, p, func(uint32) uint32 { return tag }, sticky)
			if err != nil {
				return err
			}
			changed = changed || more
		}
		sticky = false // once is enough
	}
	return nil
}

// untag takes a tag away from all processes that have it and from their sockets.
func (a *Agent) untag(ctx context.Context, tag uint32, sticky bool) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	tags, err := s.Tasks()
	if err != nil {
		return err
	}
	var owners []uint32
	for pid, t := range tags {
		if t == tag {
			owners = append(owners, pid)
			err = errors.Join(err, s.UntagTask(pid))
		}
	}
	for _, pid := range owners {
		p, gone := workload.ReadProcess(pid)
		if gone != nil {
			continue
		}
		_, more := a.retag(s, p, func(have uint32) uint32 {
			if have == tag {
				return 0
			}
			return have
		}, sticky)
		err = errors.Join(err, more)
	}
	return err
}

// retag changes the tags of a process' sockets and reports whether any did.
func (a *Agent) retag(s *bpf.Sockets, p workload.Process, next func(have uint32) uint32, sticky bool) (bool, error) {
	any := false
	for socket, err := range workload.Sockets(p) {
		if errors.Is(err, workload.ErrGone) {
			return any, nil
		}
		if err != nil {
			return any, err
		}
		i, err := s.Identity(socket.FD)
		if err == nil {
			i.Tag = next(i.Tag)
			var changed bool
			changed, err = s.Identify(socket.FD, i)
			any = any || changed
		}
		if err == nil && sticky && socket.Protocol == unix.IPPROTO_TCP {
			err = workload.ResetRoute(socket.FD)
		}
		socket.Close()
		if err != nil {
			return any, err
		}
	}
	return any, nil
}

// stickyLinks reports whether any link picks queues before its qdisc sees the
// packet, so that running connections must be made to choose anew.
func stickyLinks(r *state.Record) bool {
	for _, l := range r.Links {
		if l.Queue.Scheduler == policy.MQPrio {
			return true
		}
	}
	return false
}
