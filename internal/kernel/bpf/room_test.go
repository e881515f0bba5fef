package bpf

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/testutil"
)

// TestRemoveLeavesNothing takes everything away under traffic's feet.
func TestRemoveLeavesNothing(t *testing.T) {
	testutil.Needs(t, "tcx")
	w := newWire(t)
	o := bare
	o.Births = true
	w.publish(ports(4000), o)
	w.publish(ports(4000), o)
	if w.room.AttachedID(w.link.Index) == 0 {
		t.Fatal("link_egress is not attached")
	}
	for range 2 { // removing what is absent succeeds
		if err := w.room.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(w.room.Dir); !os.IsNotExist(err) {
		t.Errorf("pins are left: %v", err)
	}
	var programs *link.QueryResult
	var err error
	w.here.Do(func() {
		programs, err = link.QueryPrograms(link.QueryOptions{Target: w.link.Index, Attach: ebpf.AttachTCXEgress})
	})
	if err != nil || len(programs.Programs) > 0 {
		t.Errorf("programs are left: %v, %v", programs, err)
	}
	if n := onCgroup(t, w.room); n != 0 {
		t.Errorf("%d programs are left on the cgroup", n)
	}
	w.expect(otherClass, 1, func() { w.udp("udp4", w.to4(4000), nil) })
}
