package tc

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"golang.org/x/sys/unix"
)

func TestErrorNoLink(t *testing.T) {
	testutil.Netns(t)
	ops, err := steps(99, nil, nil, mustBuild(t, queueCases()[0].queue))
	if err != nil {
		t.Fatal(err)
	}
	if err := ops[0].Run(); !errors.Is(err, ErrNoLink) || err.Error() != "link #99: no such link" {
		t.Errorf("add to a link that is not there: %v", err)
	}
}

func TestReadNoLink(t *testing.T) {
	testutil.Netns(t)
	if s, err := Read(99); !errors.Is(err, ErrNoLink) {
		t.Errorf("read a link that is not there: %+v, %v", s, err)
	}
	if err := Remove(99); !errors.Is(err, ErrNoLink) {
		t.Errorf("remove from a link that is not there: %v", err)
	}
}

// TestErrorUnsupported uses a kind that no kernel has.
func TestErrorUnsupported(t *testing.T) {
	link := newLink(t, 1)
	n := mustBuild(t, queueCases()[0].queue)[0]
	n.kind = "weirless"
	err := addOp(link.Index, n, false).Run()
	if want := "link " + link.Name + ": kernel has no weirless qdisc"; !errors.Is(err, ErrUnsupported) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v lost the kernel's errno", err)
	}
}

// TestErrorNoParent: that the class for a leaf is gone does not mean that the
// kernel has no such leaf.
func TestErrorNoParent(t *testing.T) {
	link := newLink(t, 1)
	nodes := mustBuild(t, caseNamed(t, "htb 100M"))
	for _, have := range []int{0, 2} { // no qdisc; the qdisc without the class
		for _, n := range nodes[:have] {
			if err := addOp(link.Index, n, false).Run(); err != nil {
				t.Fatal(err)
			}
		}
		err := addOp(link.Index, nodes[3], false).Run()
		if !errors.Is(err, unix.ENOENT) || errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "add bfifo qdisc 7e30: at 7e1f:10") {
			t.Errorf("a leaf with %d nodes above it: %v", have, err)
		}
	}
	if err := changeOp(link.Index, nodes[3], "limit").Run(); errors.Is(err, ErrUnsupported) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("change of a leaf that is not there: %v", err)
	}
}

// TestRemoveMeanwhile: somebody removes or replaces our root between look and
// step. What is gone is removed; what is another's stays.
func TestRemoveMeanwhile(t *testing.T) {
	link := newLink(t, 1)
	q := caseNamed(t, "htb 100M")
	steps := func() []Op {
		t.Helper()
		apply(t, link, q)
		ops, err := Steps(link.Index, plan.Queue{Scheduler: policy.None}, Options{})
		if err != nil || len(ops) != 1 {
			t.Fatalf("%v, %v", ops, err)
		}
		return ops
	}
	ops := steps()
	tc(t, "qdisc del dev "+link.Name+" root")
	if err := runAll(ops); err != nil {
		t.Errorf("remove what is gone: %v", err)
	}
	ops = steps()
	tc(t, "qdisc replace dev "+link.Name+" root handle 5: pfifo limit 7")
	before := shape(t, link)
	if err := runAll(ops); err != nil {
		t.Errorf("remove what is gone, with another in its place: %v", err)
	}
	if after := shape(t, link); after != before {
		t.Errorf("changed to %s", after)
	}
}

func TestErrorTooFewQueues(t *testing.T) {
	link := newLink(t, 1)
	q := plan.Queue{Scheduler: policy.MQPrio, Classes: 4, Map: plan.SpreadOver(4)}
	err := Apply(link.Index, q, Options{TXQueues: 1})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "a TX queue for each of 4 classes, and there are 1") {
		t.Errorf("mqprio on one queue: %v", err)
	}
}

// TestErrorOffload: a veth has no traffic classes in hardware.
func TestErrorOffload(t *testing.T) {
	testutil.Needs(t, "mqprio qdisc")
	link := newLink(t, 4)
	q := plan.Queue{Scheduler: policy.MQPrio, Classes: 4, Map: plan.SpreadOver(4), Offload: true}
	err := Apply(link.Index, q, Options{TXQueues: 4})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "mqprio") {
		t.Errorf("offload on a veth: %v", err)
	}
	if s, _ := Read(link.Index); !s.Root.Default {
		t.Errorf("left behind: %+v", s)
	}
}

func TestErrorPermission(t *testing.T) {
	link := newLink(t, 1)
	ops, err := Steps(link.Index, queueCases()[0].queue, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread lost its capabilities
		link.NS.Do(func() {
			err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &make([]unix.CapUserData, 2)[0])
			if err == nil {
				err = ops[0].Run()
			}
			done <- err
		})
	}()
	if err := <-done; !errors.Is(err, ErrPermission) || !strings.HasSuffix(err.Error(), "needs CAP_NET_ADMIN") {
		t.Errorf("without capabilities: %v", err)
	}
}
