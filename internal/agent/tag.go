package agent

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// tags reads the tags of processes: none where nothing of ours is pinned.
func (a *Agent) tags() (map[uint32]uint32, error) {
	s, err := a.room().Sockets()
	if errors.Is(err, bpf.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Tasks()
}

// tag marks a process, its descendants and all their sockets. The sockets are
// looked through until none is new: one may be born between two looks, and from
// the first tag on each is born with it.
func (a *Agent) tag(ctx context.Context, p workload.Process, tag uint32, sticky bool) error {
	s, err := a.room().Sockets()
	if err != nil {
		return err
	}
	defer s.Close()
	tree, err := tagTree(ctx, s, p.PID, tag)
	if err != nil {
		return err
	}
	if len(tree) == 0 || tree[0].Start != p.Start { // its number is another process' by now
		return fmt.Errorf("tag process %d: %w", p.PID, workload.ErrGone)
	}
	for changed := true; changed; {
		changed = false
		for _, p := range tree {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("tag process %d: %w", p.PID, err)
			}
			more, err := retag(s, p, func(uint32) uint32 { return tag }, sticky)
			if err != nil {
				return err
			}
			changed = changed || more
		}
		sticky = false // once is enough
	}
	return nil
}

// tagTree tags a process and its descendants and returns them. Who is tagged
// hands it on to the children that it has from then on, so the tree is walked
// until nobody in it is new.
func tagTree(ctx context.Context, s *bpf.Sockets, pid, tag uint32) (tree []workload.Process, err error) {
	if err := s.TagTask(pid, tag); err != nil {
		return nil, err
	}
	tagged := map[uint32]uint64{} // process -> its start
	for grown := true; grown && len(tagged) != 1; {
		grown = false
		tree, err = workload.ProcessTree(ctx, pid)
		if errors.Is(err, workload.ErrGone) {
			return nil, s.UntagTask(pid)
		}
		if err != nil {
			return nil, err
		}
		for _, p := range tree {
			if tagged[p.PID] == p.Start {
				continue
			}
			if err := s.TagTask(p.PID, tag); err != nil {
				return nil, err
			}
			tagged[p.PID], grown = p.Start, true
		}
	}
	return tree, nil
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
	for pid, t := range tags {
		if ctx.Err() != nil {
			return fmt.Errorf("untag process %d: %w", pid, ctx.Err())
		}
		if t == tag {
			err = errors.Join(err, s.UntagTask(pid), strip(s, pid, tag, sticky))
		}
	}
	return err
}

// strip takes a tag away from the sockets of a process.
func strip(s *bpf.Sockets, pid, tag uint32, sticky bool) error {
	p, err := workload.ReadProcess(pid)
	if errors.Is(err, workload.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = retag(s, p, func(have uint32) uint32 {
		if have == tag {
			return 0
		}
		return have
	}, sticky)
	return err
}

// retag changes the tags of a process' sockets and reports whether any did.
func retag(s *bpf.Sockets, p workload.Process, next func(have uint32) uint32, sticky bool) (changed bool, err error) {
	for socket, err := range workload.Sockets(p) {
		if errors.Is(err, workload.ErrGone) {
			return changed, nil
		}
		if err != nil {
			return changed, err
		}
		more, err := retagSocket(s, socket, next, sticky)
		socket.Close()
		if err != nil {
			return changed, err
		}
		changed = changed || more
	}
	return changed, nil
}

func retagSocket(s *bpf.Sockets, socket workload.Socket, next func(have uint32) uint32, sticky bool) (changed bool, err error) {
	i, err := s.Identity(socket.FD)
	if err != nil {
		return false, err
	}
	i.Tag = next(i.Tag)
	if changed, err = s.Identify(socket.FD, i); err != nil {
		return changed, err
	}
	if sticky && socket.Protocol == unix.IPPROTO_TCP {
		err = workload.ResetRoute(socket.FD)
	}
	return changed, err
}

// picksQueues reports whether any link picks queues before its qdisc sees the packet,
// so that running connections must be made to choose anew.
func picksQueues(r *state.Record) bool {
	for _, l := range r.Links {
		if l.Queue.Scheduler == policy.MQPrio {
			return true
		}
	}
	return false
}
