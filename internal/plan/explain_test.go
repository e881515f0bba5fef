package plan

import (
	"cmp"
	"net/netip"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

func TestExplain(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  tagged: {match: [{pid: 7}], priority: 1}
  near: {match: [{cgroup: /a/b}], priority: 2}
  far: {match: [{cgroup: /a}], priority: 3}
  old: {match: [{cgroup: "memory:/e"}], priority: 4}
  user: {match: [{user: alice}], priority: 5}
  exe: {match: [{exe: /bin/x}], priority: 6}
  net: {match: [{cidr: 10.0.0.0/8, port: 22}], priority: 7}
  port: {match: [{port: 22, protocol: tcp, dscp: 46}], priority: 8}
`)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	s := Subject{
		Tag:     w.Contracts["tagged"].Tag(),
		Cgroups: []CgroupMatch{{"/a/b/d", v2ID(4)}, {"/a/b", v2ID(2)}, {"/a", v2ID(1)}, {"/", v2ID(0)}},
		Cgroup1: CgroupMatch{"/e/b", v1ID(6)},
		UID:     f.Users["alice"], HasUID: true, Exe: f.Exes["/bin/x"], ExePath: "/bin/x",
		Packet: &Packet{Protocol: 6, Ports: true, DSCP: 46,
			Source: netip.MustParseAddrPort("10.0.0.1:4000"), Dest: netip.MustParseAddrPort("192.0.2.1:22")},
	}
	want := []Reason{
		{"tagged", "an explicit tag", true, false, nil, "explicit tags come first"},
		{"near", "cgroup /a/b", false, false, nil, "comes after an explicit tag"},
		{"far", "cgroup /a", false, false, nil, "comes after an explicit tag"},
		{"old", "v1 cgroup memory:/e/b", false, false, nil, "comes after an explicit tag"},
		{"user", "user id 1000", false, false, nil, "comes after an explicit tag"},
		{"exe", "executable /bin/x", false, false, nil, "comes after an explicit tag"},
		{"net", "flow cidr 10.0.0.0/8 port 22", false, false, nil, "comes after an explicit tag"},
		{"port", "flow port 22 protocol tcp dscp ef", false, false, nil, "comes after an explicit tag"},
	}
	all := Explain(s, w.State)
	if diff := gocmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	// One after the other is taken away; the next one wins, and says why.
	for i, step := range []struct {
		take func()
		why  string
	}{
		{func() { s.Tag++ }, "the nearest ancestor cgroup that is claimed"},
		{func() { s.Cgroups = s.Cgroups[2:] }, "its own cgroup"},
		{func() { s.Cgroups = nil }, "the socket's maker was in it"},
		{func() { s.Cgroup1.ID = 0 }, "no tag or cgroup claims it"},
		{func() { s.HasUID = false }, "no tag, cgroup or user claims it"},
		{func() { s.Exe = ExeID{} }, "the most specific flow; nothing else claims it"},
		{func() { s.Packet.Source = netip.MustParseAddrPort("172.16.0.1:4000") }, "the most specific flow; nothing else claims it"},
	} {
		step.take()
		got := Explain(s, w.State)
		if len(got) == 0 || got[0].Workload != want[i+1].Workload || !got[0].Wins || got[0].Why != step.why {
			t.Errorf("step %d: %+v, want %s because %s", i, got, want[i+1].Workload, step.why)
		}
	}
	s.Packet.Ports = false
	if got := Explain(s, w.State); got != nil {
		t.Errorf("nothing fits, but %+v", got)
	}
}

// TestExplainBinds has limits further up: those of the nearest three workloads
// bind all the same, each once, and are told.
func TestExplainBinds(t *testing.T) {
	const (
		own   = "its own cgroup"
		after = "comes after cgroup /x/x/x/x/x"
		binds = after + "; its limit binds all the same"
		tag   = "comes after an explicit tag"
	)
	const limits, here = ", egress: {max: 2Mbit, links: {eth0: {max: 1Mbit}}}, ingress: {max: 3Mbit}", ", egress: {links: {eth1: {max: 1Mbit}}}"
	all, eth1 := []string{"at most 1Mbit of all links together"}, []string{"at most 1Mbit of eth1"}
	both := []string{"at most 2Mbit of all links together", "at most 1Mbit of eth0", "at most 3Mbit by edt of what sockets receive"}
	p, f := nested(t, "eth0: {}, eth1: {}", "", "", limits, "", here, "")
	w := wanted(t, p, f, IDs{})
	s := Subject{UID: 7, HasUID: true}
	for i := 5; i >= 0; i-- {
		s.Cgroups = append(s.Cgroups, CgroupMatch{nestedPath(i), uint64(100 + i)})
	}
	want := []Reason{
		{"w5", "cgroup /x/x/x/x/x", true, false, nil, own}, {"w4", "cgroup /x/x/x/x", false, true, eth1, binds},
		{"w3", "cgroup /x/x/x", false, false, nil, after}, {"w2", "cgroup /x/x", false, true, both, binds},
		{"w1", "cgroup /x", false, false, nil, after}, {"w0", "cgroup /", false, false, nil, after},
	}
	if diff := gocmp.Diff(want, Explain(s, w.State)); diff != "" {
		t.Error(diff)
	}
	// Limits that are too far do not bind, whoever was set to have them.
	w.Rules.Limits[w.Contracts["w1"].ID], w.Rules.Limits[w.Contracts["w5"].ID] = Limit{Max: 1e6}, Limit{Max: 1e6}
	if diff := gocmp.Diff(want, Explain(s, w.State)); diff != "" {
		t.Errorf("too far: %s", diff)
	}
	// With a tag of its own the nearest cgroup is one of the three.
	w.Contracts["set"] = Contract{ID: 999, Serial: 9}
	s.Tag = w.Contracts["set"].Tag()
	want = []Reason{
		{"set", "an explicit tag", true, false, nil, "explicit tags come first"},
		{"w5", "cgroup /x/x/x/x/x", false, true, all, tag + "; its limit binds all the same"},
		{"w4", "cgroup /x/x/x/x", false, true, eth1, tag + "; its limit binds all the same"},
		{"w3", "cgroup /x/x/x", false, false, nil, tag}, {"w2", "cgroup /x/x", false, false, nil, tag},
		{"w1", "cgroup /x", false, false, nil, tag}, {"w0", "cgroup /", false, false, nil, tag},
	}
	if diff := gocmp.Diff(want, Explain(s, w.State)); diff != "" {
		t.Errorf("tagged: %s", diff)
	}
	// So does what sockets receive, alone.
	delete(w.Rules.Limits, w.Contracts["w5"].ID)
	w.Rules.Arriving[w.Contracts["w5"].ID] = Limit{Max: 4e6}
	want[1].Limits = []string{"at most 4Mbit of what sockets receive"}
	if diff := gocmp.Diff(want, Explain(s, w.State)); diff != "" {
		t.Errorf("of sockets: %s", diff)
	}
	// A workload that claims two of the cgroups is bound once, and not by its own.
	w.Rules.Cgroups[104], w.Rules.Cgroups[102] = w.Contracts["w5"].ID, w.Contracts["w3"].ID
	w.Rules.Limits[w.Contracts["w3"].ID] = Limit{Max: 1e6}
	s.Tag = 0
	want = []Reason{
		{"w5", "cgroup /x/x/x/x/x", true, false, nil, own}, {"w5", "cgroup /x/x/x/x", false, false, nil, after},
		{"w3", "cgroup /x/x/x", false, true, all, binds}, {"w3", "cgroup /x/x", false, false, nil, after},
		{"w1", "cgroup /x", false, true, all, binds}, {"w0", "cgroup /", false, false, nil, after},
	}
	if diff := gocmp.Diff(want, Explain(s, w.State)); diff != "" {
		t.Errorf("twice: %s", diff)
	}
}

// TestExplainPrefersTheDestination has two flows of one shape, one for each end.
func TestExplainPrefersTheDestination(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  ssh: {match: [{port: 22}], priority: 1}
  web: {match: [{port: 80}], priority: 2}
`)
	w := wanted(t, p, hostOf(p), IDs{})
	for text, want := range map[string]string{"tcp 10.0.0.1:22 > 10.0.0.2:80": "web", "tcp 10.0.0.1:80 > 10.0.0.2:22": "ssh"} {
		packet, err := ParsePacket(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Explain(Subject{Packet: &packet}, w.State); len(got) == 0 || got[0].Workload != want {
			t.Errorf("%s: %+v, want %s", text, got, want)
		}
	}
}

// specificity is how a reader of the documentation would order the flows.
func specificity(f policy.Flow) (s [4]int) {
	s[0] = -1
	if f.Prefix.IsValid() {
		if s[0] = f.Prefix.Bits(); f.Prefix.Addr().Is4() {
			s[0] += 96
		}
	}
	for i, has := range []bool{len(f.Ports) > 0, f.Protocol >= 0, f.DSCP >= 0} {
		if has {
			s[i+1] = 1
		}
	}
	return s
}

// fits is the same reader's idea of when a flow matches.
func fits(f policy.Flow, p Packet) bool {
	if f.Prefix.IsValid() && !f.Prefix.Contains(p.Source.Addr()) && !f.Prefix.Contains(p.Dest.Addr()) {
		return false
	}
	if f.Protocol >= 0 && uint8(f.Protocol) != p.Protocol || f.DSCP >= 0 && uint8(f.DSCP) != p.DSCP {
		return false
	}
	if len(f.Ports) == 0 {
		return true
	}
	for _, r := range f.Ports {
		for _, port := range []uint16{p.Source.Port(), p.Dest.Port()} {
			if p.Ports && r.First <= port && port <= r.Last {
				return true
			}
		}
	}
	return false
}

// TestExplainAgrees holds Explain against a reader that goes through the policy
// flow by flow and knows no tables.
func TestExplainAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := wantable.Draw(t, "policy")
		w := wanted(t, p, hostOf(p), IDs{})
		for range 20 {
			packet := drawPacket(t)
			var best [4]int
			may := map[string]bool{} // the workloads whose best flow is the most specific
			for _, wl := range p.Workloads {
				for _, s := range wl.Match {
					if wl.Via != policy.ViaBPF || s.Kind != policy.KindFlow || !fits(s.Flow, packet) {
						continue
					}
					now := specificity(s.Flow)
					for i := range now {
						if c := cmp.Compare(now[i], best[i]); len(may) == 0 || c != 0 {
							if len(may) == 0 || c > 0 {
								best = now
								clear(may)
							}
							break
						}
					}
					if now == best {
						may[wl.Name] = true
					}
				}
			}
			got := Explain(Subject{Packet: &packet}, w.State)
			if (len(got) == 0) != (len(may) == 0) || len(got) > 0 && !may[got[0].Workload] {
				t.Fatalf("%+v: Explain says %+v, a reader %v", packet, got, may)
			}
		}
	})
}

func drawPacket(t *rapid.T) Packet {
	from := hosts
	if rapid.Bool().Draw(t, "v6") {
		from = hosts6
	}
	end := func(name string) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr(rapid.SampledFrom(from).Draw(t, name)), uint16(rapid.IntRange(19, 27).Draw(t, name+" port")))
	}
	p := Packet{
		Source: end("source"), Dest: end("destination"), Protocol: rapid.SampledFrom([]uint8{1, 6, 17}).Draw(t, "protocol"),
		DSCP: rapid.SampledFrom([]uint8{0, 46}).Draw(t, "dscp"),
	}
	p.Ports = p.Protocol != 1
	return p
}

// TestExplainOrder draws subjects that several kinds of selector fit: the one
// that wins is of the kind that comes first.
func TestExplainOrder(t *testing.T) {
	rules := []string{"an explicit tag", "cgroup", "v1 cgroup", "user id", "executable", "flow"}
	rapid.Check(t, func(t *rapid.T) {
		p := wantable.Draw(t, "policy")
		w := wanted(t, p, hostOf(p), IDs{})
		packet := drawPacket(t)
		s := Subject{
			UID: 1000, HasUID: true, Exe: ExeID{8 << 20, 1000}, Packet: &packet,
			Cgroups: []CgroupMatch{{"/a/b", v2ID(2)}, {"/a", v2ID(1)}, {"/", v2ID(0)}}, Cgroup1: CgroupMatch{"/e", v1ID(5)},
		}
		if len(w.Contracts) > 0 && rapid.Bool().Draw(t, "tagged") {
			for _, name := range union(w.Contracts, w.Contracts)[:1] {
				s.Tag = w.Contracts[name].Tag()
			}
		}
		last := 0
		for i, r := range Explain(s, w.State) {
			kind := last
			for kind < len(rules) && !strings.HasPrefix(r.Rule, rules[kind]) {
				kind++
			}
			if kind == len(rules) || r.Wins != (i == 0) || r.Workload == "" {
				t.Fatalf("reason %d is %+v", i, r)
			}
			last = kind
		}
	})
}
