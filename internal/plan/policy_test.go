package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

// kernel is one that has everything.
func kernel() Features {
	return Features{
		Qdiscs: map[string]bool{
			"mqprio": true, "prio": true, "ets": true, "htb": true, "fq": true, "fq bands": true, "fq_codel": true, "bfifo": true,
		},
		TCX: true, ClsBPF: true, SKStorage: true, SockCreate: true, RawTracepoint: true, PidfdGetfd: true, BTF: true, NetPrio: true, SockCgroup: true,
		Atomics: true, TailCalls: true, SockOps: true, Police: true, Weighs: true, Ifb: true, VRF: true,
		Unknown: map[string]string{},
	}
}

// hostOf is a host that has all that the policies name: each user, executable
// and process, and of each cgroup pattern the cgroups of a small tree.
func hostOf(policies ...*policy.Policy) Facts {
	f := Facts{
		Root: true, Links: map[string]LinkFacts{}, Features: kernel(), Cgroup2: "/sys/fs/cgroup",
		Cgroup1:  map[string]string{"memory": "/v1/memory", "net_prio": "/v1/net_prio"},
		Parents1: map[uint64]uint64{}, Users: map[string]uint32{}, Exes: map[string]ExeID{}, PIDs: map[uint32]bool{},
		Cgroups: map[policy.Cgroup][]CgroupMatch{},
	}
	for i, path := range tree {
		f.Parents1[v1ID(i)] = 0
		for j, parent := range tree {
			if parent != path && (parent == "/" && depth(path) == 1 || path[:max(0, len(path)-2)] == parent) {
				f.Parents1[v1ID(i)] = v1ID(j)
			}
		}
	}
	for _, p := range policies {
		for i, l := range p.Links {
			f.Links[l.Name] = LinkFacts{Index: 2 + i, Speed: 1e9, TXQueues: 1, Ethernet: true, Root: Qdisc{Kind: "fq_codel", Default: true}, Up: true}
		}
		for i, v := range p.VRFs {
			for _, l := range v.Links {
				f.Links[l.Name] = LinkFacts{Index: 50 + i, Up: true}
			}
		}
		for _, w := range p.Workloads {
			for _, s := range w.Match {
				f.give(s)
			}
		}
	}
	return f
}

// tree is the cgroups of the host, in both hierarchies.
var tree = []string{"/", "/a", "/a/b", "/a/c", "/a/b/d", "/e", "/e/b"}

func v2ID(i int) uint64 { return 100 + uint64(i) }

func v1ID(i int) uint64 { return 200 + uint64(i) }

func (f Facts) give(s policy.Selector) {
	switch s.Kind {
	case policy.KindPID:
		f.PIDs[s.PID] = true
	case policy.KindUser:
		if n, err := strconv.ParseUint(s.User, 10, 32); err == nil {
			f.Users[s.User] = uint32(n)
		} else if _, ok := f.Users[s.User]; !ok {
			f.Users[s.User] = 1000 + uint32(len(f.Users))
		}
	case policy.KindExe:
		if _, ok := f.Exes[s.Exe]; !ok {
			f.Exes[s.Exe] = ExeID{Device: 8 << 20, Inode: 1000 + uint64(len(f.Exes))}
		}
	case policy.KindCgroup, policy.KindUnit:
		id := v2ID
		if s.Cgroup.Controller != "" {
			id = v1ID
		}
		f.Cgroups[s.Cgroup] = nil
		for i, path := range tree {
			if s.Cgroup.Match(path) {
				f.Cgroups[s.Cgroup] = append(f.Cgroups[s.Cgroup], CgroupMatch{path, id(i)})
			}
		}
	}
}

// wantable draws policies that can be had on their own hosts: no claims meet.
var wantable = rapid.Custom(drawPolicy).Filter(func(p *policy.Policy) bool {
	_, errs := Wanted(p, hostOf(p), IDs{}, nil)
	return len(errs) == 0
})

// drawPolicy draws a policy that Check has nothing against on its host: the
// values are few, so that two policies often differ in one thing only.
func drawPolicy(t *rapid.T) *policy.Policy {
	p := &policy.Policy{File: "drawn.yaml"}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"eth0", "eth1"}), 0, 2, rapid.ID[string]).Draw(t, "links") {
		p.Links = append(p.Links, policy.Link{
			Name: name, Rate: rapid.SampledFrom([]policy.Rate{0, 1e8, 1e9}).Draw(t, "rate"),
			Scheduler: rapid.SampledFrom([]policy.Scheduler{policy.Auto, policy.HTB, policy.Prio, policy.None}).Draw(t, "scheduler"),
			Egress:    policy.Bandwidth{Limit: policy.Limit{Max: drawMax(t, "egress")}}, Ingress: policy.Bandwidth{Limit: policy.Limit{Max: drawMax(t, "ingress")}},
		})
	}
	slices.SortFunc(p.Links, func(a, b policy.Link) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	if rapid.Bool().Draw(t, "has default") {
		p.Default = &policy.Contract{Priority: drawPriority(t)}
	}
	taken := map[string]bool{}
	for i := range rapid.IntRange(0, 4).Draw(t, "workloads") {
		w := policy.Workload{
			Name: fmt.Sprintf("w%d", rapid.IntRange(0, 5).Draw(t, "name")), Contract: policy.Contract{Priority: drawPriority(t)},
			Via:  rapid.SampledFrom([]policy.Via{policy.ViaBPF, policy.ViaBPF, policy.ViaNetPrio}).Draw(t, "via"),
			Span: policy.Span{Line: 10 * (i + 1), Column: 3},
		}
		if taken[w.Name] {
			continue
		}
		taken[w.Name] = true
		if w.Via == policy.ViaBPF {
			w.Contract.Egress.Max = drawMax(t, "max")
			w.Contract.Egress.PPS = rapid.SampledFrom([]policy.PacketRate{0, 0, policy.MinPPS, 20_000}).Draw(t, "pps")
			w.Contract.Ingress.Max = drawMax(t, "max of what arrives")
			if w.Contract.Ingress.Max != 0 {
				w.Contract.Ingress.Burst = drawBurst(t, "burst of what arrives")
			}
			for i, bits := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int{0, 8, 32}), 0, 2, rapid.ID[int]).Draw(t, "prefixes") {
				to := policy.Toward{Prefixes: []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), bits).Masked()}}
				to.Max = []policy.Rate{1e6, 2e6}[i]
				w.Contract.Egress.Toward = append(w.Contract.Egress.Toward, to)
			}
			for _, l := range p.Links {
				if max := drawMax(t, "max on "+l.Name); max != 0 {
					w.Contract.Egress.PerLink = map[string]policy.Limit{l.Name: {Max: max, Burst: drawBurst(t, "burst on "+l.Name)}}
				}
				divisible := l.Rate != 0 && (l.Scheduler == policy.Auto || l.Scheduler == policy.HTB)
				if divisible && rapid.IntRange(0, 3).Draw(t, "has a share of "+l.Name) == 0 {
					w.Contract.Egress.Min = map[string]policy.Rate{l.Name: rapid.SampledFrom([]policy.Rate{8e3, 1e6}).Draw(t, "share")}
				}
			}
		}
		for j := range rapid.IntRange(1, 3).Draw(t, "selectors") {
			s := drawSelector(t)
			s.Span = policy.Span{Line: 10*(i+1) + j, Column: 5}
			if key := s.String(); !taken[key] {
				taken[key] = true
				w.Match = append(w.Match, s)
			}
		}
		p.Workloads = append(p.Workloads, w)
	}
	return p
}

// drawBurst draws what passes at once below a limit, or that it is left open.
func drawBurst(t *rapid.T, label string) policy.Size {
	return rapid.SampledFrom([]policy.Size{0, 0, policy.MinBurst, 1 << 20, policy.MaxBurst}).Draw(t, label)
}

// drawMax draws a limit, or none.
func drawMax(t *rapid.T, label string) policy.Rate {
	return rapid.SampledFrom([]policy.Rate{0, 0, 2e7, 5e7}).Draw(t, label)
}

func drawPriority(t *rapid.T) policy.Priority {
	level := rapid.Map(rapid.IntRange(0, 15), func(n int) policy.Level { return policy.Level(n) })
	p := policy.Priority{Default: level.Draw(t, "level")}
	if rapid.IntRange(0, 3).Draw(t, "per link") == 0 {
		p = policy.Priority{Default: policy.Unset, PerLink: map[string]policy.Level{"eth0": level.Draw(t, "level on eth0")}}
	}
	return p
}

func drawSelector(t *rapid.T) policy.Selector {
	switch kind := rapid.SampledFrom([]policy.Kind{
		policy.KindPID, policy.KindCgroup, policy.KindUnit, policy.KindUser, policy.KindExe, policy.KindFlow, policy.KindFlow,
	}).Draw(t, "kind"); kind {
	case policy.KindPID:
		return policy.Selector{Kind: kind, PID: uint32(rapid.IntRange(2, 4).Draw(t, "pid"))}
	case policy.KindCgroup:
		return policy.Selector{Kind: kind, Cgroup: policy.Cgroup{
			Controller: rapid.SampledFrom([]string{"", "memory"}).Draw(t, "controller"),
			Pattern:    rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/*", "/a/**", "/**", "/*/b", "/a*", "/e"}).Draw(t, "pattern"),
		}}
	case policy.KindUnit:
		return policy.Selector{Kind: kind, Cgroup: policy.Cgroup{Pattern: "/**/" + rapid.SampledFrom([]string{"b", "d", "x"}).Draw(t, "unit")}}
	case policy.KindUser:
		return policy.Selector{Kind: kind, User: rapid.SampledFrom([]string{"alice", "bob", "77"}).Draw(t, "user")}
	case policy.KindExe:
		return policy.Selector{Kind: kind, Exe: rapid.SampledFrom([]string{"/bin/x", "/bin/y"}).Draw(t, "exe")}
	default:
		return policy.Selector{Kind: kind, Flow: drawFlow(t)}
	}
}

var (
	prefixes = []string{"10.0.0.0/8", "10.0.0.0/16", "10.0.0.1/32", "0.0.0.0/0", "::/0", "fd00::/8", "fd00::1/128", "::ffff:10.0.0.0/104"}
	hosts    = []string{"10.0.0.1", "10.0.1.1", "10.1.0.1", "192.0.2.1"}
	hosts6   = []string{"fd00::1", "fd00::2", "2001:db8::1"}
)

func drawFlow(t *rapid.T) policy.Flow {
	f := policy.Flow{Protocol: -1, DSCP: -1}
	if rapid.Bool().Draw(t, "by prefix") {
		f.Prefix = netip.MustParsePrefix(rapid.SampledFrom(prefixes).Draw(t, "prefix"))
	}
	if rapid.Bool().Draw(t, "by protocol") {
		f.Protocol = rapid.SampledFrom([]int16{1, 6, 17}).Draw(t, "protocol")
	}
	if rapid.IntRange(0, 3).Draw(t, "by dscp") == 0 {
		f.DSCP = rapid.SampledFrom([]int8{0, 46}).Draw(t, "dscp")
	}
	if rapid.Bool().Draw(t, "by port") || !f.Prefix.IsValid() && f.Protocol < 0 && f.DSCP < 0 {
		first := uint16(rapid.IntRange(20, 24).Draw(t, "port"))
		f.Ports = []policy.PortRange{{First: first, Last: first + uint16(rapid.IntRange(0, 2).Draw(t, "more ports"))}}
	}
	return f
}
