package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

func TestCheck(t *testing.T) {
	const text = `version: 1
links:
  eth0: {}
workloads:
  all:
    match:
      - pid: 730
      - cgroup: /a
      - cgroup: memory:/b
      - unit: nginx.service
      - user: alice
      - exe: /bin/x
      - port: 22
    priority: 3
`
	for name, c := range map[string]struct {
		host func(*Facts)
		want string // line:column: message | help
	}{
		"all there": {func(*Facts) {}, ""},
		"no interface": {func(f *Facts) { f.Links = map[string]LinkFacts{"eth1": {}, "wlan": {}} },
			`3:3: no interface "eth0" here | did you mean "eth1"?`},
		"no interface like it": {func(f *Facts) { f.Links = map[string]LinkFacts{"wlan": {}} },
			`3:3: no interface "eth0" here | ip link shows what there is`},
		"no program at egress": {func(f *Facts) { f.Features.TCX, f.Features.ClsBPF = false, false },
			`3:3: link "eth0": kernel runs no BPF program at egress (neither tcx nor cls_bpf) | weir doctor tells what this kernel has`},
		"cls_bpf will do":     {func(f *Facts) { f.Features.TCX = false }, ""},
		"not known is not no": {func(f *Facts) { f.Features.TCX, f.Features.ClsBPF, f.Features.Unknown[FeatureTCX] = false, false, "x" }, ""},
		"no memory of sockets": {func(f *Facts) { f.Features.SKStorage = false },
			`3:3: link "eth0": kernel remembers nothing of sockets for BPF (no sk_storage) | weir doctor tells what this kernel has`},
		"no rung": {func(f *Facts) { f.Features.Qdiscs = map[string]bool{"fq_codel": true} },
			`3:3: link "eth0": no way to keep a strict order: kernel has no mqprio qdisc; kernel has no prio qdisc; kernel has no ets qdisc; kernel has no htb qdisc; kernel has no fq qdisc | weir doctor shows the ladder; scheduler: none leaves the order to the device`},
		"somebody's qdisc": {func(f *Facts) { f.Links["eth0"] = LinkFacts{Speed: 1e9, Root: Qdisc{Kind: "htb", Handle: 0x10000}} },
			`3:3: link "eth0" has a root qdisc of somebody else's: htb 1: | adopt: true lets Weir replace it, and weir reset puts it back`},
		"our own qdisc": {func(f *Facts) {
			f.Links["eth0"] = LinkFacts{Speed: 1e9, Root: Qdisc{Kind: "htb", Handle: RootHandle << 16}}
		}, ""},
		"no process": {func(f *Facts) { f.PIDs = nil },
			`7:14: no process 730 here | weir set --pid changes a process when it runs; a unit, user or exe matches those to come`},
		"no cgroup2": {func(f *Facts) { f.Cgroup2 = "" },
			`8:17: no cgroup2 mount here: nothing tells sockets by their cgroup | mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
10:15: no cgroup2 mount here: nothing tells sockets by their cgroup | mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified`},
		"no hierarchy": {func(f *Facts) { f.Cgroup1 = map[string]string{"memori": "/x"} },
			`9:17: no v1 hierarchy "memory" is mounted here | did you mean "memori"?`},
		"no user": {func(f *Facts) { f.Users, f.UserNames = nil, []string{"alicia"} },
			`11:15: no user "alice" here | did you mean "alicia"?`},
		"no file": {func(f *Facts) { f.Exes = nil },
			`12:14: no file /bin/x here | an executable is known by its file: install it first, or match its unit or user`},
		"no socket programs": {func(f *Facts) { f.Features.SockCreate = false },
			`7:14: kernel tells nobody who makes a socket (no cgroup/sock_create programs) | match the unit, user or port instead
9:17: kernel tells nobody who makes a socket (no cgroup/sock_create programs) | match the unit, user or port instead
12:14: kernel tells nobody who makes a socket (no cgroup/sock_create programs) | match the unit, user or port instead`},
		"no BTF": {func(f *Facts) { f.Features.BTF = false },
			`9:17: kernel does not describe its own types (no BTF) | match the unit, user or port instead
12:14: kernel does not describe its own types (no BTF) | match the unit, user or port instead`},
		"not root: what can not be seen is not complained of": {func(f *Facts) { f.Root, f.Features = false, Features{} }, ""},
		"several, in order": {func(f *Facts) { f.Exes, f.PIDs, f.Links = nil, nil, nil },
			`3:3: no interface "eth0" here | ip link shows what there is
7:14: no process 730 here | weir set --pid changes a process when it runs; a unit, user or exe matches those to come
12:14: no file /bin/x here | an executable is known by its file: install it first, or match its unit or user`},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, text)
			f := hostOf(p)
			c.host(&f)
			if got := findings(Check(p, f)); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// findings puts every finding on a line; one without a place or help is wrong.
func findings(errs []policy.Diagnostic) string {
	var all []string
	for _, e := range errs {
		all = append(all, fmt.Sprintf("%d:%d: %s | %s", e.Line, e.Column, e.Message, e.Help))
	}
	return strings.Join(all, "\n")
}

// TestCheckNetPrio asks less of a kernel where net_prio carries the priority: it
// moves processes, and needs to know nothing of sockets.
func TestCheckNetPrio(t *testing.T) {
	p := parsed(t, `version: 1
workloads:
  a: {match: [{exe: /bin/x}], priority: 3, via: net_prio}
`)
	for name, c := range map[string]struct {
		host func(*Facts)
		want string
	}{
		"no socket programs": {func(f *Facts) { f.Features.SockCreate, f.Features.BTF = false, false }, ""},
		"no net_prio": {func(f *Facts) { f.Features.NetPrio = false },
			`3:3: workload "a": kernel has no cgroup v1 net_prio | leave via out, and declare its links`},
		"not known":                  {func(f *Facts) { f.Features.NetPrio, f.Features.Unknown[FeatureNetPrio] = false, "x" }, ""},
		"either v1 or v2, and no v2": {func(f *Facts) { f.Features.SockCgroup = false }, ""},
	} {
		f := hostOf(p)
		c.host(&f)
		if got := findings(Check(p, f)); got != c.want {
			t.Errorf("%s: got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestCheckLimits asks for what limits need, of those on one link and of links.
func TestCheckLimits(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {egress: {max: 1Gbit}, ingress: {max: 1Gbit}}, eth1: {scheduler: none}}
workloads:
  a: {match: [{port: 1}], egress: {links: {eth1: {max: 50Mbit}}}}
`)
	f := hostOf(p)
	if got := findings(Check(p, f)); got != "" {
		t.Errorf("all there: %s", got)
	}
	f.Features.SockOps, f.Features.Police, f.Features.Ifb = false, false, false
	const want = `2:16: link "eth0": no way to hold its egress: BPF programs of this kernel can not pace TCP (no cgroup sock_ops); kernel has no filters that police (cls_matchall, act_police and act_gact) | leave egress out; weir doctor tells what this kernel has
2:38: link "eth0": no way to hold its ingress: BPF programs of this kernel can not pace TCP (no cgroup sock_ops); kernel has no filters that police (cls_matchall, act_police and act_gact); kernel can not queue what arrives (ifb, cls_u32 and act_mirred) | leave ingress out; weir doctor tells what this kernel has
4:27: workload "a": no way to hold its limit of link eth1: BPF programs of this kernel can not pace TCP (no cgroup sock_ops); scheduler none of link "eth1" keeps no packet until its time of departure; scheduler none of link "eth1" holds nobody to a rate | leave egress out; weir doctor tells what this kernel has`
	if got := findings(Check(p, f)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	f.Root = false
	if got := findings(Check(p, f)); got != "" {
		t.Errorf("not root: %s", got)
	}
}

// TestCheckLimit asks for what limits need, of workloads that have one.
func TestCheckLimit(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}, eth1: {}}
workloads:
  a: {match: [{port: 1}], egress: {max: 50Mbit}}
  b: {match: [{port: 2}], priority: 3}
  c: {match: [{port: 3}], priority: 3, egress: {max: 1Gbit}}
`)
	const (
		help = "; kernel has no fq qdisc, which edt waits in; htb holds one link each, and this limit is of 2 together: name the links" +
			" | leave egress out; weir doctor tells what this kernel has"
		none      = "no way to hold its limit of all links together: "
		atomics   = none + "BPF programs of this kernel can not count a limit together (no atomic fetch)" + help
		tailCalls = none + "BPF programs of this kernel can not go on in the one that counts a limit (no tail calls from functions)" + help
		sockOps   = none + "BPF programs of this kernel can not pace TCP (no cgroup sock_ops)" + help
	)
	for name, c := range map[string]struct {
		host func(*Facts)
		want string
	}{
		"all there":     {func(*Facts) {}, ""},
		"no atomics":    {func(f *Facts) { f.Features.Atomics = false }, `4:27: workload "a": ` + atomics + "\n" + `6:40: workload "c": ` + atomics},
		"no tail calls": {func(f *Facts) { f.Features.TailCalls = false }, `4:27: workload "a": ` + tailCalls + "\n" + `6:40: workload "c": ` + tailCalls},
		"no sock_ops, and atomics not known": {func(f *Facts) {
			f.Features.Atomics, f.Features.SockOps, f.Features.Unknown[FeatureAtomics] = false, false, "x"
		}, `4:27: workload "a": ` + sockOps + "\n" + `6:40: workload "c": ` + sockOps},
		"not root": {func(f *Facts) { f.Root, f.Features = false, Features{} }, ""},
	} {
		f := hostOf(p)
		delete(f.Features.Qdiscs, "fq")
		c.host(&f)
		if got := findings(Check(p, f)); got != c.want {
			t.Errorf("%s: got:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

// TestCheckIngress asks for what holds sockets, too.
func TestCheckIngress(t *testing.T) {
	p := parsed(t, `version: 1
workloads:
  a: {match: [{port: 1}], ingress: {max: 50Mbit}}
  b: {match: [{port: 2}], ingress: {max: 50Mbit}}
`)
	const help = " | leave ingress out; weir doctor tells what this kernel has"
	both := func(what string) string { return `3:27: workload "a": ` + what + "\n" + `4:27: workload "b": ` + what }
	for name, c := range map[string]struct {
		host func(*Facts)
		want string
	}{
		"all there":  {func(*Facts) {}, ""},
		"no atomics": {func(f *Facts) { f.Features.Atomics = false }, both("BPF programs of this kernel can not count a limit together (no atomic fetch)" + help)},
		"not known":  {func(f *Facts) { f.Features.Atomics, f.Features.Unknown[FeatureAtomics] = false, "x" }, ""},
		"no cgroup2": {func(f *Facts) { f.Cgroup1, f.Cgroup2 = nil, "" },
			both("no cgroup2 mount here: no program sees what sockets receive | mount -t cgroup2 cgroup2 /sys/fs/cgroup")},
		"not root": {func(f *Facts) { f.Root, f.Features = false, Features{} }, ""},
	} {
		f := hostOf(p)
		c.host(&f)
		if got := findings(Check(p, f)); got != c.want {
			t.Errorf("%s: got:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

// TestCheckNetPrioBesideCgroups has a kernel on which net_prio takes from another
// workload what it is matched by.
func TestCheckNetPrioBesideCgroups(t *testing.T) {
	const text = `version: 1
links: {eth0: {}}
workloads:
  a: {match: [{user: alice}], priority: 3, via: net_prio}
  b: {match: [{unit: b.service}], priority: 4}
`
	p := parsed(t, text)
	f := hostOf(p)
	if got := findings(Check(p, f)); got != "" {
		t.Errorf("a kernel that keeps them apart: %s", got)
	}
	f.Features.SockCgroup = false
	want := `4:3: workload "a": on this kernel a net_prio group takes the v2 cgroup from all sockets, and workload "b" is matched by it | leave via out here, or match there by user, exe or port`
	if got := findings(Check(p, f)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, other := range []string{"cgroup: \"memory:/b\"", "user: bob"} {
		p := parsed(t, strings.Replace(text, "unit: b.service", other, 1))
		f := hostOf(p)
		f.Features.SockCgroup = false
		if got := findings(Check(p, f)); got != "" {
			t.Errorf("%s: %s", other, got)
		}
	}
}

// TestCheckNamesTheScheduler points to the value that can not be had.
func TestCheckNamesTheScheduler(t *testing.T) {
	p := parsed(t, "version: 1\nlinks:\n  eth0: {rate: 1Gbit, scheduler: ets}\n")
	f := hostOf(p)
	f.Features.Qdiscs["ets"] = false
	want := `3:34: link "eth0": no way to keep a strict order: kernel has no ets qdisc | weir doctor shows the ladder; scheduler: none leaves the order to the device`
	if got := findings(Check(p, f)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestCheckHierarchies(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  a: {match: [{cgroup: "memory:/a"}], priority: 3}
  b: {match: [{cgroup: "cpu:/a"}], priority: 3}
`)
	f := hostOf(p)
	f.Cgroup1["cpu"] = "/v1/cpu"
	if got, want := findings(Check(p, f)), "5:24: v1 paths of two hierarchies in one policy: memory and cpu | name cgroups of one v1 hierarchy only"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	p = parsed(t, "version: 1\nlinks: {eth0: {}}\nworkloads:\n  a: {match: [{cgroup: \"name=systemd:/a\"}], priority: 3}\n")
	f.Cgroup1["name=systemd"] = "/v1/systemd"
	const named = `4:24: the kernel tells nobody which group of "name=systemd" a socket's maker is in: that hierarchy has no controller` +
		" | name a hierarchy that has a controller, such as net_prio:/x or pids:/x"
	if got := findings(Check(p, f)); got != named {
		t.Errorf("got %s\nwant %s", got, named)
	}
}

func TestCheckTooMany(t *testing.T) {
	p := &policy.Policy{}
	for i := range MaxContracts + 1 {
		p.Workloads = append(p.Workloads, policy.Workload{Name: fmt.Sprint(i), Span: policy.Span{Line: i + 4, Column: 3}})
	}
	_, errs := Wanted(p, hostOf(), IDs{}, nil)
	if got, want := findings(errs), "65522:3: 65519 workloads, at most 65518 are possible | workloads of one contract can be one workload with more selectors"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if _, errs = Wanted(&policy.Policy{Workloads: p.Workloads[1:]}, hostOf(), IDs{}, nil); len(errs) > 0 {
		t.Error(policy.Errors(errs))
	}
}
