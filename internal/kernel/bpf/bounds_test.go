package bpf

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestBounds finds the limits that a packet of a process deep in a tree of cgroups
// is charged to.
func TestBounds(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	// /a/b/c/d/e/f below the scope's cgroup, the process in the last.
	var dirs []string
	for dir := w.room.Cgroup; len(dirs) < 6; {
		dir = mkdir(t, dir, string(rune('a'+len(dirs))))
		dirs = append(dirs, dir)
	}
	c := startChild(t, w.here, childOptions{cgroup: dirs[5]})
	together := func(n int) plan.Owner { return plan.Owner{Contract: plan.FirstID + plan.ContractID(n)} }
	here := func(n int) plan.Owner {
		return plan.Owner{Contract: plan.FirstID + plan.ContractID(n), Link: w.link.Index}
	}
	own := plan.Owner{Contract: plan.OwnEgress, Link: w.link.Index}
	arriving := plan.Owner{Contract: plan.OwnIngress, Link: w.link.Index}
	packets := func(of plan.Owner) plan.Owner {
		of.Packets = true
		return of
	}
	for name, o := range map[string]struct {
		claims []int // the workload of each cgroup; -1: nobody's
		tag    int   // the workload that the process is tagged for; 0: none
		limits []plan.Owner
		binds  []plan.Owner
		class  int
	}{
		"its own":                   {[]int{-1, -1, -1, -1, -1, 1}, 0, []plan.Owner{together(1), together(2)}, []plan.Owner{together(1)}, 1},
		"the next above":            {[]int{-1, 2, -1, -1, 1, -1}, 0, []plan.Owner{together(2)}, []plan.Owner{together(2)}, 1},
		"its own and those above":   {[]int{4, -1, 3, -1, 2, 1}, 0, []plan.Owner{together(1), together(2), together(3), together(4)}, []plan.Owner{together(1), together(2), together(3), together(4)}, 1},
		"three above and no more":   {[]int{5, 4, 3, 2, 1, -1}, 0, []plan.Owner{together(1), together(3), together(4), together(5)}, []plan.Owner{together(1), together(3), together(4)}, 1},
		"each workload once":        {[]int{4, 3, 2, 1, 2, 1}, 0, []plan.Owner{together(1), together(2), together(3), together(4)}, []plan.Owner{together(1), together(2), together(3), together(4)}, 1},
		"a tag's, and its cgroups'": {[]int{-1, -1, -1, -1, 2, 1}, 7, []plan.Owner{together(1), together(2), together(7)}, []plan.Owner{together(1), together(2), together(7)}, 7},
		"of this link too":          {[]int{-1, -1, -1, -1, 2, 1}, 0, []plan.Owner{together(1), here(1), here(2)}, []plan.Owner{together(1), here(1), here(2)}, 1},
		"of packets":                {[]int{-1, -1, -1, -1, 2, 1}, 0, []plan.Owner{packets(together(1)), here(1), packets(here(2)), packets(own)}, []plan.Owner{packets(together(1)), here(1), packets(here(2)), packets(own)}, 1},
		"the link's own":            {[]int{-1, -1, -1, -1, -1, 1}, 0, []plan.Owner{own, here(1)}, []plan.Owner{own, here(1)}, 1},
		"the link's own, nobody's":  {[]int{-1, -1, -1, -1, -1, -1}, 0, []plan.Owner{own}, []plan.Owner{own}, unclaimedClass - firstClass},
		"not what arrives":          {[]int{-1, -1, -1, -1, -1, 1}, 0, []plan.Owner{here(1), arriving}, []plan.Owner{here(1)}, 1},
	} {
		if testing.Short() && name != "a tag's, and its cgroups'" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			rules, promises := noRules(), w.promises()
			promises.Contracts[plan.Unclaimed] = plan.Promise{Priority: class(unclaimedClass)}
			for i, n := range o.claims {
				if n >= 0 {
					rules.Cgroups[cgroupID(t, dirs[i])] = plan.FirstID + plan.ContractID(n)
				}
			}
			limits := map[plan.Owner]policy.Rate{}
			for _, of := range o.limits {
				limits[of] = 64e3
			}
			limit(&rules, &promises, limits)
			g := w.publishTo(rules, promises, Options{Controller: -1, LinkLimits: len(limits)})
			s := sockets(t, w.room)
			if o.tag != 0 {
				tag(t, s, c.pid, plan.FirstID+plan.ContractID(o.tag))
				defer func() {
					if err := s.UntagTask(uint32(c.pid)); err != nil {
						t.Error(err)
					}
				}()
			}
			before, err := g.Held()
			if err != nil || len(before) != len(limits) {
				t.Fatalf("limits %v, %v", before, err)
			}
			var all map[plan.Owner]plan.Held
			w.insist(firstClass+o.class, func() { c.do("udp %s", w.to4(4000)) }, func() bool {
				if all, err = g.Held(); err != nil {
					t.Fatal(err)
				}
				return !slices.ContainsFunc(o.binds, func(of plan.Owner) bool { return all[of].Passed == before[of].Passed })
			})
			var charged []string
			for of, h := range all {
				if h.Passed > before[of].Passed && of != own && of != packets(own) { // neighbours are asked for below the link's own, too
					charged = append(charged, fmt.Sprint(of))
				}
			}
			for _, own := range []plan.Owner{own, packets(own)} {
				if slices.Contains(o.binds, own) && all[own].Passed == before[own].Passed {
					t.Error("the link's own limit was not charged")
				}
			}
			var want []string
			for _, of := range o.binds {
				if of != own && of != packets(own) {
					want = append(want, fmt.Sprint(of))
				}
			}
			slices.Sort(charged)
			slices.Sort(want)
			if diff := cmp.Diff(want, charged); diff != "" {
				t.Errorf("charged (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBoundsOfClosed charges what waits for its neighbour until its socket is closed,
// and can keep nothing any more, to the limits above as well.
func TestBoundsOfClosed(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	outer := mkdir(t, w.room.Cgroup, "outer")
	inner := mkdir(t, outer, "inner")
	c := startChild(t, w.here, childOptions{cgroup: inner})
	own, above := plan.Owner{Contract: plan.FirstID}, plan.Owner{Contract: plan.FirstID + 1}
	rules, promises := noRules(), w.promises()
	rules.Cgroups[cgroupID(t, inner)] = own.Contract
	rules.Cgroups[cgroupID(t, outer)] = above.Contract
	limit(&rules, &promises, map[plan.Owner]policy.Rate{own: 64e3, above: 64e3})
	g := w.publishTo(rules, promises, Options{Controller: -1})
	w.there.Output("ip", "link", "set", "dev", w.far.Name, "arp", "off")
	w.here.Output("ip", "neigh", "flush", "dev", w.link.Name)
	w.expect(firstClass, 1, func() {
		c.do("udp %s", w.to4(4000))
		w.there.Output("ip", "link", "set", "dev", w.far.Name, "arp", "on")
	})
	all, err := g.Held()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []plan.Owner{own, above} {
		if all[of].Passed == 0 {
			t.Errorf("%v was not charged", of)
		}
	}
}

// TestBoundsHold has datagrams that are below several limits go by the least of
// them, and pay none where one of them refuses.
func TestBoundsHold(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	together := plan.Owner{Contract: plan.FirstID}
	here := plan.Owner{Contract: plan.FirstID, Link: w.link.Index}
	own := plan.Owner{Contract: plan.OwnEgress, Link: w.link.Index}
	for name, limits := range map[string]map[plan.Owner]policy.Rate{
		"of this link alone":       {here: 8e6},
		"the link's own":           {own: 8e6},
		"the least is of all":      {together: 8e6, here: 80e6, own: 100e6},
		"the least is of the link": {together: 80e6, here: 100e6, own: 8e6},
	} {
		t.Run(name, func(t *testing.T) {
			g := w.limit(limits)
			came, _, sent := w.burst(t, 1000, 2000, 0)
			checkBurst(t, came, sent, 8e6)
			all, err := g.Held()
			if err != nil {
				t.Fatal(err)
			}
			for of, h := range all {
				// A chunk of 2.5 ms may be paid ahead, and the link carries more than the burst.
				ahead := uint64(limits[of]) / 8 / 400
				if least := uint64(came) * packet; h.Passed < least || h.Passed > least+ahead+4*packet {
					t.Errorf("%v was charged for %d bytes, and %d came", of, h.Passed, least)
				}
				if refuses := limits[of] == 8e6; refuses != (h.Dropped > 0) {
					t.Errorf("%v dropped %d", of, h.Dropped)
				}
			}
		})
	}
}

// TestIngressHolds is TestLimitHolds of what arrives by a link.
func TestIngressHolds(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	own := plan.Owner{Contract: plan.OwnIngress, Link: w.link.Index}
	rates := []policy.Rate{8e6, 64e3, 80e6}
	if testing.Short() {
		rates = rates[:1]
	}
	for _, rate := range rates {
		t.Run(rate.String(), func(t *testing.T) {
			g := w.limit(map[plan.Owner]policy.Rate{own: rate})
			w.attachIngress(g)
			const packets = 2000
			came, _, sent := burst(t, w.there, w.here, fmt.Sprintf("%s:1000", w.link.IPv4.Addr()), packets, 0)
			// Packets may wait together for their turn at the other end, and where two CPUs
			// look at once, both may let one pass.
			least, most := certain(sent, float64(rate)/8)/2, most(sent, rate)+float64(runtime.NumCPU()-1)
			if came < least || float64(came) > most {
				t.Errorf("%d packets came, want %d to %.1f", came, least, most)
			}
			if h := held(t, g); h.Dropped < uint64(packets-came) || h.Passed < uint64(came)*packet {
				t.Errorf("%d came: %+v", came, h)
			}
		})
	}
}

// attachIngress is attach of link_ingress.
func (w *wire) attachIngress(g *Generation) {
	w.t.Helper()
	if !w.hasTCX() {
		w.here.Output("tc", "qdisc", "replace", "dev", w.link.Name, "clsact")
		w.here.Output("tc", "filter", "replace", "dev", w.link.Name, "ingress", "prio", "1", "handle", "1",
			"bpf", "direct-action", "object-pinned", filepath.Join(g.linkDir(w.link.Index), ingressPin))
		return
	}
	var err error
	w.here.Do(func() { err = g.AttachIngress(w.link.Index) })
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestLimitsOfLinksAreReadBack reads what was written.
func TestLimitsOfLinksAreReadBack(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	room := newRoom(t)
	rules, l := noRules(), promises(4)
	const one, two = plan.FirstID, plan.FirstID + 1
	for i := range plan.ContractID(4) {
		l.Contracts[plan.FirstID+i] = plan.Promise{Priority: 7, Serial: 1}
	}
	limit(&rules, &l, map[plan.Owner]policy.Rate{
		{Contract: one}: 1e6, {Contract: one, Link: benchLink}: 2e6, {Contract: two, Link: benchLink}: 3e6,
		{Contract: plan.OwnEgress, Link: benchLink}: 4e6, {Contract: plan.OwnIngress, Link: benchLink}: 5e6,
		{Contract: one, Packets: true}: 10, {Contract: two, Link: benchLink, Packets: true}: 8e6,
		{Contract: plan.OwnEgress, Link: benchLink, Packets: true}: 7000,
		{Contract: two + 1, Packets: true}:                         99, {Contract: two + 1, Link: benchLink, Packets: true}: 98,
	})
	g := begin(t, room, 1, rules, Options{Controller: -1, LinkLimits: 7})
	load(t, g, benchLink, rules, l)
	again, err := room.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	got, err := again.Promises(benchLink)
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(l.Contracts)
	maps.DeleteFunc(want, func(id plan.ContractID, _ plan.Promise) bool { return id < plan.FirstID })
	maps.DeleteFunc(got, func(id plan.ContractID, _ plan.Promise) bool { return id < plan.FirstID })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("promises (-want +got):\n%s", diff)
	}
	egress, ingress, err := again.OwnLimits(benchLink)
	if err != nil || egress != l.Egress || ingress != l.Ingress {
		t.Errorf("the link's own: %v, %v, %v", egress, ingress, err)
	}
}
