package tc

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// A State is what stands at the egress of one link.
type State struct {
	Root  plan.Qdisc // any root; kind "noop" on a link that was never up
	Queue plan.Queue // Weir's own; Scheduler None where the root is not ours
	Drift []string   // where a root of ours is not what Weir builds, in words
}

// Err is nil where the state is without drift, else an error that wraps
// [ErrDrift] and says all of it.
func (s State) Err() error {
	if len(s.Drift) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDrift, strings.Join(s.Drift, "; "))
}

// Read says what is at the root of a link in the caller's namespace. With drift,
// Queue is what the tree still claims to be.
func Read(link int) (State, error) {
	c, err := dial()
	if err != nil {
		return State{}, err
	}
	defer c.close()
	return read(c, link)
}

func read(c *conn, link int) (State, error) {
	all, filters, err := readOurs(c, link)
	if err != nil {
		return State{}, err
	}
	s := State{Root: all.root().qdisc(), Queue: plan.Queue{Scheduler: policy.None}}
	if s.Root.Handle != rootHandle {
		return s, nil
	}
	if s.Queue, err = all.recognise(); err != nil {
		return s, err
	}
	if s.Queue.Classes == 0 {
		s.Drift = []string{all.root().String() + " has no classes of Weir's"}
		return s, nil
	}
	want, err := build(s.Queue, all.txQueues())
	if err != nil {
		s.Drift = []string{fmt.Sprintf("%s is nothing that Weir builds: %v", all.root(), err)}
		return s, nil
	}
	s.Drift, err = drift(all, filters, want)
	return s, err
}

// readOurs also dumps the filters of our classful qdiscs, where the root is
// ours.
func readOurs(c *conn, link int) (all, filters entries, err error) {
	if all, err = readEntries(c, link); err != nil || all.root().handle != rootHandle {
		return all, nil, err
	}
	for _, parent := range []uint32{rootHandle, shaperClass, shapedHandle} {
		if _, ok := all.find(minor(parent) != 0, parent); !ok {
			continue
		}
		f, err := c.filters(link, parent)
		if err != nil {
			return nil, nil, err
		}
		filters = append(filters, f...)
	}
	return all, filters, nil
}

// filters dumps the filters of a qdisc or class; none where it takes none.
func (c *conn) filters(link int, parent uint32) (entries, error) {
	f, err := c.dump(link, unix.RTM_GETTFILTER, unix.RTM_NEWTFILTER, parent)
	if err != nil {
		return nil, kernelError(link, "read filters of "+handleString(parent), "", err)
	}
	return f, nil
}

// drift compares what is with what Weir builds, both ways.
func drift(all, filters entries, want []node) ([]string, error) {
	var out []string
	have := all.index()
	for _, n := range want {
		e, ok := have[n.id()]
		if !ok || !n.is(e) {
			out = append(out, fmt.Sprintf("%s is missing", n))
			continue
		}
		words, _, err := n.differs(e)
		if err != nil {
			return nil, err
		}
		for _, w := range words {
			out = append(out, fmt.Sprintf("%s: %s", n, w))
		}
	}
	for _, e := range all.unexpected(want) {
		out = append(out, fmt.Sprintf("%s is not Weir's", e))
	}
	for _, parent := range parents(filters) {
		out = append(out, "filters are attached to "+handleString(parent))
	}
	return out, nil
}

// unexpected are the qdiscs and classes that are no nodes of the tree. Classes
// other than HTB's come and go with their qdisc, and what the kernel put below
// our mqprio by itself has no handle.
func (all entries) unexpected(want []node) entries {
	var out entries
	wanted := make(map[id]node, len(want))
	for _, n := range want {
		wanted[n.id()] = n
	}
	for _, e := range all {
		if e.besideRoot() || e.isClass() && e.kind != "htb" || e.isQdisc() && e.byKernel() {
			continue
		}
		if n, ok := wanted[e.id()]; !ok || !n.is(e) {
			out = append(out, e)
		}
	}
	return out
}

// parents are the objects to which filters are attached, each once.
func parents(filters entries) []uint32 {
	var out []uint32
	for _, f := range filters {
		if len(out) == 0 || out[len(out)-1] != f.parent {
			out = append(out, f.parent)
		}
	}
	return out
}
