package tc

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// Names under which Probe reports what is no qdisc.
const (
	probedBands = "fq bands" // fq has bands (6.7)
	Policing    = "police"   // filters can do what SetPolice asks for
	Weighing    = "weighing" // htb counts packets as what they stand for, as ReadWaiting has it
)

// kinds are the qdiscs that Weir builds.
func kinds() []string {
	return []string{"mqprio", "prio", "ets", "htb", "fq", "fq_codel", "bfifo"}
}

// Probe says which of the qdiscs that Weir builds this kernel has, by kind, and
// under "fq bands" whether its fq has bands and under Policing whether its filters
// police, and under Weighing whether its htb weighs, by adding each to a link in a throw-away namespace; it loads modules that are
// there to be loaded. A kind that could not be tried is not in has, but in unknown with
// the reason.
func Probe() (has map[string]bool, unknown map[string]string) {
	has, unknown = map[string]bool{}, map[string]string{}
	done := make(chan error)
	go onOwnThread(done, func() error { return probe(has, unknown) })
	if err := <-done; err != nil {
		for _, kind := range append(kinds(), probedBands, Policing, Weighing) {
			unknown[kind] = err.Error()
		}
	}
	return has, unknown
}

// onOwnThread never unlocks the thread on which fn ran, so that the runtime
// ends it and the kernel the namespace. The first thread of a process can not
// be ended; a goroutine that finds itself there hands the work on.
func onOwnThread(done chan<- error, fn func() error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		inner := make(chan error)
		go onOwnThread(inner, fn)
		done <- <-inner
		runtime.UnlockOSThread()
		return
	}
	done <- fn()
}

func probe(has map[string]bool, unknown map[string]string) error {
	c, link, err := probeAlone()
	if err != nil {
		return err
	}
	defer c.close()
	note := func(name string, err error) {
		if err != nil && !errors.Is(err, unix.ENOENT) {
			unknown[name] = err.Error()
			return
		}
		has[name] = err == nil
	}
	for _, kind := range kinds() {
		note(kind, c.try(link, kind))
	}
	note(probedBands, c.tryBands(link))
	note(Policing, c.tryPolice(link))
	note(Weighing, c.tryWaiting(link))
	return nil
}

// probeAlone leaves for a new namespace with a link to probe on.
func probeAlone() (c *conn, link int, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, 0, fmt.Errorf("unshare network namespace: %w", err)
	}
	if link, err = probeLink(); err != nil {
		return nil, 0, err
	}
	c, err = dial()
	return c, link, err
}

// probeLink makes a veth pair with the two queues that mqprio wants.
func probeLink() (int, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = "probe0", 2, 2
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "probe1"}); err != nil {
		return 0, fmt.Errorf("add veth pair to probe on: %w", err)
	}
	l, err := netlink.LinkByName(attrs.Name)
	if err != nil {
		return 0, fmt.Errorf("find veth to probe on: %w", err)
	}
	return l.Attrs().Index, nil
}

// try adds a qdisc of the kind and deletes it; ENOENT says that there is no such
// kind.
func (c *conn) try(link int, kind string) error {
	m := message{typ: unix.RTM_NEWQDISC, flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, kind: kind,
		tcm: nl.TcMsg{Ifindex: int32(link), Handle: rootHandle, Parent: rootParent}}
	if o := probeOptions(kind); o != nil {
		m.options = o.encode()
	}
	if err := c.send(m); err != nil {
		return err
	}
	return c.send(message{typ: unix.RTM_DELQDISC, tcm: m.tcm})
}

// probeOptions are for the kinds that can not do without.
func probeOptions(kind string) optionSet {
	switch kind {
	case "htb":
		return htbRoot{class: 1}
	case "prio":
		return prio{bands: 2}
	case "ets":
		return ets{bands: 2, strict: 2}
	case "mqprio":
		return mqprio{classes: 2, queues: spread(2, 2)}
	}
	return nil
}

// tryBands gives fq a map and looks whether it has one; ENOENT says that it has
// not.
func (c *conn) tryBands(link int) error {
	want := plan.Queue{Scheduler: policy.FQ, Classes: fqBands, Map: plan.SpreadOver(fqBands)}
	nodes, err := build(want, 0)
	if err != nil {
		return err
	}
	if err := c.send(addOp(link, nodes[0], false).message); err != nil {
		return err
	}
	if s, err := read(c, link); err != nil || s.Queue.Equal(want) {
		return err
	}
	return unix.ENOENT
}
