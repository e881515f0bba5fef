package bpf

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// receiving publishes rules under which sockets of contracts may receive only so
// much, by rules that claim them.
func (w *wire) receiving(rules plan.Rules, limits map[plan.ContractID]policy.Rate) *Generation {
	w.t.Helper()
	w.forgetLimits()
	rules.Arriving = map[plan.ContractID]plan.Limit{}
	contracts := map[string]plan.Contract{}
	for i := range plan.ContractID(8) {
		contracts[fmt.Sprint(i)] = plan.Contract{ID: plan.FirstID + i, Serial: 1}
	}
	for id, max := range limits {
		rules.Arriving[id] = plan.Limit{Max: max}
	}
	w.number++
	g := begin(w.t, w.room, w.number, rules, bare)
	load(w.t, g, w.link.Index, rules, w.promises())
	if err := g.LoadReceive(rules, contracts); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(g.AttachSockets(rules, bare), g.AttachReceive()); err != nil {
		w.t.Fatal(err)
	}
	w.attach(g)
	if err := errors.Join(g.SettleLimits(), w.room.RemoveGeneration(w.number-1)); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// opened has a child open a socket towards a far one, and returns that and where the
// child's is.
func (w *wire) opened(c *child) (far net.PacketConn, at *net.UDPAddr) {
	w.t.Helper()
	var err error
	w.there.Do(func() { far, err = net.ListenPacket("udp4", w.to4(0)) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { far.Close() })
	return far, reopened(w.t, c, far)
}

// reopened has a child open another socket towards a far one, and returns where it is.
func reopened(t testing.TB, c *child, far net.PacketConn) *net.UDPAddr {
	t.Helper()
	c.do("open %s", far.LocalAddr())
	c.do("send")
	if err := far.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, at, err := far.ReadFrom(make([]byte, 10))
	if err != nil {
		t.Fatal(err)
	}
	return at.(*net.UDPAddr)
}

// TestReceiveHolds is TestLimitHolds of what reaches a socket.
func TestReceiveHolds(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
	far, at := w.opened(c)
	rules := noRules()
	rules.Cgroups[cgroupID(t, w.room.Cgroup)] = plan.FirstID
	packets := 2000
	if testing.Short() {
		packets = 500
	}
	for _, rate := range []policy.Rate{64e3, 8e6, 80e6} {
		if testing.Short() && rate != 8e6 {
			continue
		}
		t.Run(rate.String(), func(t *testing.T) {
			g := w.receiving(rules, map[plan.ContractID]policy.Rate{plan.FirstID: rate})
			var sent []sending
			begin := time.Now()
			for range packets {
				from := time.Since(begin)
				if _, err := far.WriteTo(make([]byte, packet-42), at); err != nil {
					t.Fatal(err)
				}
				sent = append(sent, sending{from, time.Since(begin)})
			}
			before := time.Since(begin)
			h := held(t, g)
			for h.Passed/packet+h.Dropped < uint64(packets) && time.Since(begin) < before+time.Second {
				time.Sleep(time.Millisecond)
				h = held(t, g)
			}
			came := packets - int(h.Dropped)
			// Packets may wait together for their turn at this end, and where two CPUs look
			// at once, both may let one pass.
			sent[packets-1].to = time.Since(begin)
			if least := certain(sent, float64(rate)/8) / 2; came < least || float64(came) > most(sent, rate)+1 {
				t.Errorf("%d packets came, want %d to %.1f", came, least, most(sent, rate)+1)
			}
			if h.Passed < uint64(came)*packet || h.Streams {
				t.Errorf("%d datagrams came: %+v", came, h)
			}
		})
	}
}

// TestReceiveBounds finds the limits that a datagram on its arrival is charged to.
func TestReceiveBounds(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	outer := mkdir(t, w.room.Cgroup, "outer")
	inner := mkdir(t, outer, "inner")
	c := startChild(t, w.here, childOptions{cgroup: inner})
	far, _ := w.opened(c)
	const none, own, above, tagged, port = 0, 1, 2, 3, 4
	w.publish(noRules(), bare) // what a tag needs
	s := sockets(t, w.room)
	for name, o := range map[string]struct {
		inner, outer, tag int
		binds             []int
	}{
		"its own":                 {own, none, none, []int{own}},
		"the one above":           {none, above, none, []int{above}},
		"both":                    {own, above, none, []int{own, above}},
		"a tag's":                 {none, none, tagged, []int{tagged}},
		"a tag's and both":        {own, above, tagged, []int{own, above, tagged}},
		"a tag's that is its own": {own, none, own, []int{own}},
		"its headers'":            {none, none, none, []int{port}},
	} {
		t.Run(name, func(t *testing.T) {
			rules := noRules()
			for dir, n := range map[string]int{inner: o.inner, outer: o.outer} {
				if n != none {
					rules.Cgroups[cgroupID(t, dir)] = plan.FirstID + plan.ContractID(n)
				}
			}
			if o.tag != none {
				tag(t, s, c.pid, plan.FirstID+plan.ContractID(o.tag))
				defer func() {
					if err := s.UntagTask(uint32(c.pid)); err != nil {
						t.Error(err)
					}
				}()
			}
			// All that this socket receives is claimed by its port, too, and owners go first.
			at := reopened(t, c, far)
			rules.Tuples = []plan.Tuple{{Fields: plan.FieldPort}}
			rules.Flows[plan.FlowKey{Port: uint16(at.Port)}] = plan.FirstID + port
			limits := map[plan.ContractID]policy.Rate{}
			for _, n := range []int{own, above, tagged, port} {
				limits[plan.FirstID+plan.ContractID(n)] = 64e3
			}
			g := w.receiving(rules, limits)
			before := receivedBelow(t, g)
			if _, err := far.WriteTo([]byte("x"), at); err != nil {
				t.Fatal(err)
			}
			var want, got []plan.ContractID
			for _, n := range o.binds {
				want = append(want, plan.FirstID+plan.ContractID(n))
			}
			for range 100 {
				got = nil
				for id, bytes := range receivedBelow(t, g) {
					if bytes > before[id] {
						got = append(got, id)
					}
				}
				slices.Sort(got)
				if slices.Equal(want, got) {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("charged are %v, want %v", got, want)
		})
	}
}

// receivedBelow is how many bytes each limit of what sockets receive was charged for.
func receivedBelow(t *testing.T, g *Generation) map[plan.ContractID]uint64 {
	t.Helper()
	all, err := g.Held()
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[plan.ContractID]uint64{}
	for of, h := range all {
		if of.Link == plan.AtSockets {
			bytes[of.Contract] = h.Passed
		}
	}
	return bytes
}

// TestReceiveIsReadBack changes what a contract may receive in a generation in force.
func TestReceiveIsReadBack(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	room := newRoom(t)
	const one, two = plan.FirstID, plan.FirstID + 1
	contracts := map[string]plan.Contract{"one": {ID: one, Serial: 1}, "two": {ID: two, Serial: 1}}
	g := begin(t, room, 1, noRules(), Options{Controller: -1, Limits: true})
	has := func(want map[plan.ContractID]plan.Limit) {
		t.Helper()
		again, err := room.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		rules, err := again.Rules()
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(want, rules.Arriving) {
			t.Errorf("%v may arrive, want %v", rules.Arriving, want)
		}
		runs, err := again.Receives()
		if err != nil || runs != (want != nil) {
			t.Errorf("socket_ingress runs: %v, %v", runs, err)
		}
		if has, err := again.HasLimits(); err != nil || has {
			t.Errorf("something that is sent has a limit: %v, %v", has, err)
		}
	}
	set := func(name string, max policy.Rate) {
		t.Helper()
		if err := g.SetArriving(contracts[name], plan.Limit{Max: max}, contracts); err != nil {
			t.Fatal(err)
		}
	}
	has(nil)
	set("one", 0) // none, and none was there
	has(nil)
	set("one", 1e6)
	has(map[plan.ContractID]plan.Limit{one: {Max: 1e6}})
	answers := plan.Limit{Max: 1e6, Answers: true}
	if err := g.SetArriving(contracts["one"], answers, contracts); err != nil {
		t.Fatal(err)
	}
	has(map[plan.ContractID]plan.Limit{one: answers})
	set("one", 1e6)
	has(map[plan.ContractID]plan.Limit{one: {Max: 1e6}})
	set("two", 2e6)
	set("one", 3e6)
	has(map[plan.ContractID]plan.Limit{one: {Max: 3e6}, two: {Max: 2e6}})
	set("one", 0)
	has(map[plan.ContractID]plan.Limit{two: {Max: 2e6}})
	// With the last limit the program goes, and with the next one it is back.
	set("two", 0)
	has(nil)
	set("two", 4e6)
	has(map[plan.ContractID]plan.Limit{two: {Max: 4e6}})
}

// There is room for as many limits of what sockets receive as a policy has.
func TestReceiveHasRoom(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	room := newRoom(t)
	rules := noRules()
	rules.Arriving = map[plan.ContractID]plan.Limit{}
	contracts := map[string]plan.Contract{}
	for i := range plan.ContractID(3 * spareLimits) {
		contracts[fmt.Sprint(i)] = plan.Contract{ID: plan.FirstID + i, Serial: 1}
		rules.Arriving[plan.FirstID+i] = plan.Limit{Max: 64e3 * policy.Rate(1+i)}
	}
	g := begin(t, room, 1, rules, bare)
	if err := errors.Join(g.LoadReceive(rules, contracts), g.SettleLimits()); err != nil {
		t.Fatal(err)
	}
	found, err := g.Rules()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(rules.Arriving, found.Arriving) {
		t.Errorf("%d limits are read back, want %d", len(found.Arriving), len(rules.Arriving))
	}
}
