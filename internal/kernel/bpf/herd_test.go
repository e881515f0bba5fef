package bpf

import (
	"maps"
	"testing"

	"github.com/weir-net/weir/internal/plan"
)

// TestHerd gives all but one contract one priority, ladder and unclaimed
// included, and takes it back.
func TestHerd(t *testing.T) {
	w := newWire(t)
	g := w.publish(ports(1000, 2000), bare)
	before, err := g.Promises(w.link.Index)
	if err != nil {
		t.Fatal(err)
	}
	const herd = otherClass - 1
	restore, err := g.Herd(w.link.Index, func(id plan.ContractID) (uint32, bool) { return class(herd), id != plan.FirstID+1 })
	if err != nil {
		t.Fatal(err)
	}
	for port, class := range map[int]int{1000: herd, 2000: firstClass + 1, 4000: herd} {
		w.expect(class, 1, func() { w.udp("udp4", w.to4(port), nil) })
	}
	now, err := g.Promises(w.link.Index)
	if err != nil || now[plan.FirstID].Serial != before[plan.FirstID].Serial || len(now) != len(before) {
		t.Errorf("%d contracts, before %d; serial %d (%v)", len(now), len(before), now[plan.FirstID].Serial, err)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if now, err = g.Promises(w.link.Index); err != nil || !maps.Equal(now, before) {
		t.Errorf("not as it was: %v (%v)", now, err)
	}
	w.expect(firstClass, 1, func() { w.udp("udp4", w.to4(1000), nil) })
}
