package workload

import (
	"context"
	"fmt"
	"slices"
)

// ProcessTree returns a process and its descendants, the process first, then in
// the order of their ids; those that have exited and wait to be waited for are
// left out. It looks again until a whole round finds nobody new, so children born
// while it looks are found if their parent is; one whose parent exited before any
// round saw it belongs to another tree by then. It wraps ErrGone if the process
// has exited.
func ProcessTree(ctx context.Context, pid uint32) ([]Process, error) {
	r := new(reader)
	first, err := r.process(pid)
	if err == nil && first.Zombie {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("read process %d: %w", pid, err)
	}
	known := map[uint32]Process{pid: first}
	for {
		added, err := r.addChildren(ctx, known)
		if err != nil {
			return nil, fmt.Errorf("follow children of process %d: %w", pid, err)
		}
		if !added {
			break
		}
	}
	tree := make([]Process, 0, len(known))
	for _, p := range known {
		if p.PID != pid {
			tree = append(tree, p)
		}
	}
	slices.SortFunc(tree, func(a, b Process) int { return int(a.PID) - int(b.PID) })
	return slices.Insert(tree, 0, known[pid]), nil
}

// addChildren adds every process whose parent is known.
func (r *reader) addChildren(ctx context.Context, known map[uint32]Process) (added bool, err error) {
	pids, err := processIDs()
	if err != nil {
		return false, err
	}
	// Ids wrap, so a child may have a lower one than its parent and is then
	// found in the next round.
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		dir, err := openProc(pid)
		if err != nil {
			continue
		}
		if r.addChild(pid, dir, known) {
			added = true
		}
		dir.close()
	}
	return added, nil
}

func (r *reader) addChild(pid uint32, dir procDir, known map[uint32]Process) bool {
	stat, err := dir.stat()
	if err != nil || stat.exited() {
		return false
	}
	if before, ok := known[pid]; ok && before.Start == stat.start {
		return false
	}
	parent, ok := known[stat.parent]
	if !ok || parent.Start > stat.start {
		return false // a parent that is younger than its child is a reused id
	}
	p, err := r.open(pid, dir)
	if err != nil {
		return false
	}
	known[pid] = p
	return true
}
