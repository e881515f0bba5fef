package bpf

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/plan"
)

func TestPromisesReadBack(t *testing.T) {
	room := newRoom(t)
	n := uint32(0)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		l := plan.LinkRules{L2: 14, Contracts: map[plan.ContractID]plan.Promise{}}
		for id := range plan.FirstID {
			l.Contracts[id] = plan.Promise{Priority: rapid.Uint32().Draw(rt, "priority")}
		}
		highest := plan.FirstID
		for id, priority := range rapid.MapOfN(rapid.Uint16Range(uint16(plan.FirstID), 3000), rapid.Uint32(), 0, 20).Draw(rt, "contracts") {
			l.Contracts[plan.ContractID(id)] = plan.Promise{Priority: priority, Serial: rapid.Uint16Min(1).Draw(rt, "serial")}
			highest = max(highest, plan.ContractID(id))
		}
		o := bare
		o.Links, o.Highest = 1, highest
		g, err := room.Begin(n, noRules(), o)
		if err != nil {
			rt.Fatal(err)
		}
		defer g.Close()
		defer room.RemoveGeneration(n)
		if err := g.LoadLink(3, noRules(), l, nil); err != nil {
			rt.Fatal(err)
		}
		again, err := room.Open(n)
		if err != nil {
			rt.Fatal(err)
		}
		defer again.Close()
		got, err := again.Promises(3)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(l.Contracts, got); diff != "" {
			rt.Fatalf("read back what was not written:\n%s", diff)
		}
		set := plan.Promise{Priority: 7, Serial: 9}
		if err := again.SetPromise(3, highest+1, set); err != nil {
			rt.Fatal(err)
		}
		if got, err = g.Promises(3); err != nil || got[highest+1] != set {
			rt.Fatalf("promise set through another descriptor: %+v, %v", got[highest+1], err)
		}
	})
}

// TestSetPromise changes what an open socket's packets get, at once.
func TestSetPromise(t *testing.T) {
	w := newWire(t)
	g := w.publish(ports(4000), bare)
	c := startChild(t, w.here, childOptions{})
	c.do("open %s", w.to4(4000))
	w.expect(firstClass, 1, func() { c.do("send") })
	if err := g.SetPromise(w.link.Index, plan.FirstID, plan.Promise{Priority: class(firstClass + 4), Serial: 1}); err != nil {
		t.Fatal(err)
	}
	w.expect(firstClass+4, 1, func() { c.do("send") })
}
