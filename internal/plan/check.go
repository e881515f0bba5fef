package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// Check holds a policy against the host: everything that it names must be there
// and every link must find a rung. It returns all that does not fit, in order of
// position.
func Check(p *policy.Policy, f Facts) []policy.Diagnostic {
	var errs []policy.Diagnostic
	add := func(span policy.Span, help, format string, args ...any) {
		errs = append(errs, policy.Diagnostic{Span: span, Message: fmt.Sprintf(format, args...), Help: help})
	}
	limits, received := HowLimited(p, f), HowReceived(p, f)
	for _, l := range p.Links {
		shares := sharesOf(p, l.Name, limits, IDs{}.shareNumbers(p, l.Name, limits))
		checkLink(l, Demand{shares, limits.depart(l.Name) || received.depart(l.Name)}, f, add)
	}
	checkVRFs(p, f, add)
	controller1 := ""
	matched := matchedByCgroup(p)
	for _, w := range p.Workloads {
		if w.Via == policy.ViaNetPrio {
			checkNetPrio(w, matched, f, add)
		}
		f.checkLimits(p, w, add)
		checkWeight(p, w, limits, f, add)
		if in := w.Contract.Ingress; in.Limit != (policy.Limit{}) {
			f.checkIngress(p, w.Name, in, add)
		}
		if w.Contract.VRF != "" {
			f.checkBound(w, add)
		}
		switch {
		case w.Contract.TCPMemory.Max == 0:
		case w.Contract.TCPMemory.Via == policy.MemoryViaMemcg:
			f.checkMemcg(w, add)
		default:
			f.checkMemory(w, add)
		}
		for _, s := range w.Match {
			if w.Via == policy.ViaBPF {
				checkIdentity(s, f, add)
			}
			checkSelector(s, f, add)
			c := s.Cgroup.Controller
			if c != "" && controller1 != "" && c != controller1 {
				add(s.Span, "name cgroups of one v1 hierarchy only",
					"v1 paths of two hierarchies in one policy: %s and %s", controller1, c)
			}
			if c != "" {
				controller1 = c
			}
		}
	}
	policy.Errors(errs).Sort()
	return errs
}

// tooMany reports more workloads than there are numbers for.
func tooMany(p *policy.Policy, n int) policy.Diagnostic {
	d := policy.Diagnostic{
		Message: fmt.Sprintf("%d workloads, at most %d are possible", n, MaxContracts),
		Help:    "workloads of one contract can be one workload with more selectors",
	}
	if len(p.Workloads) > 0 {
		d.Span = p.Workloads[len(p.Workloads)-1].Span
	}
	return d
}

type addFunc func(span policy.Span, help, format string, args ...any)

func checkLink(l policy.Link, d Demand, f Facts, add addFunc) {
	lf, ok := f.Links[l.Name]
	if !ok {
		add(l.Span, policy.DidYouMean(l.Name, slices.Sorted(maps.Keys(f.Links)), "ip link shows what there is"),
			"no interface %q here", l.Name)
		return
	}
	if f.Root && f.Features.lacks(f.Features.SKStorage, FeatureSKStorage) {
		add(l.Span, "weir doctor tells what this kernel has", "link %q: kernel remembers nothing of sockets for BPF (no sk_storage)", l.Name)
	}
	if f.Root && f.Features.lacks(f.Features.TCX, FeatureTCX) && f.Features.lacks(f.Features.ClsBPF, FeatureClsBPF) {
		add(l.Span, "weir doctor tells what this kernel has", "link %q: kernel runs no BPF program at egress (neither tcx nor cls_bpf)", l.Name)
	}
	object := fmt.Sprintf("link %q", l.Name)
	f.checkOwn(object, PromiseEgress, l.Egress, add)
	f.checkOwn(object, PromiseIngress, l.Ingress, add)
	rung, why := Choose(l, d, lf, f.Features)
	if why != "" && f.Root {
		at := l.Span
		if l.Scheduler != policy.Auto {
			at = l.SchedulerSpan
		}
		help, what := "weir doctor shows the ladder; scheduler: none leaves the order to the device", "a strict order"
		if len(d.Shares) > 0 {
			help, what = "weir doctor shows the ladder; a link is divided by htb, which needs its rate", "a strict order and what workloads are promised"
		}
		add(at, help, "link %q: no way to keep %s: %s", l.Name, what, why)
	}
	if foreign(lf.Root) && !l.Adopt && why == "" && rung.Scheduler != policy.None {
		add(l.Span, "adopt: true lets Weir replace it, and weir reset puts it back",
			"link %q has a root qdisc of somebody else's: %s %x:", l.Name, lf.Root.Kind, lf.Root.Handle>>16)
	}
}

// foreign reports a root qdisc that somebody put there on purpose.
func foreign(q Qdisc) bool {
	return q.Kind != "" && !q.Default && q.Handle>>16 != RootHandle
}

// lacks reports that a feature was looked for and is not there.
func (f Features) lacks(has bool, name string) bool {
	_, unknown := f.Unknown[name]
	return !has && !unknown
}

// matchedByCgroup names a workload whose sockets are known by their v2 cgroup, ""
// if there is none.
func matchedByCgroup(p *policy.Policy) string {
	for _, w := range p.Workloads {
		if w.Via == policy.ViaBPF && slices.ContainsFunc(w.Match, func(s policy.Selector) bool {
			return (s.Kind == policy.KindCgroup || s.Kind == policy.KindUnit) && s.Cgroup.Controller == ""
		}) {
			return w.Name
		}
	}
	return ""
}

// checkNetPrio asks for the controller, and that its groups take nothing from a
// workload that is matched by cgroup.
func checkNetPrio(w policy.Workload, matched string, f Facts, add addFunc) {
	switch {
	case !f.Root:
	case f.Features.lacks(f.Features.NetPrio, FeatureNetPrio):
		add(w.Span, "leave via out, and declare its links", "workload %q: kernel has no cgroup v1 net_prio", w.Name)
	case matched != "" && f.Features.lacks(f.Features.SockCgroup, FeatureSockCgroup):
		add(w.Span, "leave via out here, or match there by user, exe or port",
			"workload %q: on this kernel a net_prio group takes the v2 cgroup from all sockets, and workload %q is matched by it", w.Name, matched)
	}
}

// checkIdentity asks for what tells the maker of a socket.
func checkIdentity(s policy.Selector, f Facts, add addFunc) {
	switch {
	case !f.Root || s.Kind != policy.KindPID && s.Kind != policy.KindExe && s.Cgroup.Controller == "":
	case strings.HasPrefix(s.Cgroup.Controller, "name="):
		add(s.Span, "name a hierarchy that has a controller, such as net_prio:/x or pids:/x",
			"the kernel tells nobody which group of %q a socket's maker is in: that hierarchy has no controller", s.Cgroup.Controller)
	case f.Features.lacks(f.Features.SockCreate, FeatureSockCreate):
		add(s.Span, "match the unit, user or port instead", "kernel tells nobody who makes a socket (no cgroup/sock_create programs)")
	case f.Features.lacks(f.Features.BTF, FeatureBTF) && s.Kind != policy.KindPID:
		add(s.Span, "match the unit, user or port instead", "kernel does not describe its own types (no BTF)")
	}
}

func checkSelector(s policy.Selector, f Facts, add addFunc) {
	switch s.Kind {
	case policy.KindPID:
		if !f.PIDs[s.PID] {
			add(s.Span, "weir set --pid changes a process when it runs; a unit, user or exe matches those to come", "no process %d here", s.PID)
		}
	case policy.KindUser:
		if _, ok := f.Users[s.User]; !ok {
			if _, err := strconv.ParseUint(s.User, 10, 32); err != nil {
				add(s.Span, policy.DidYouMean(s.User, f.UserNames, "getent passwd shows who there is"), "no user %q here", s.User)
			}
		}
	case policy.KindExe:
		if _, ok := f.Exes[s.Exe]; !ok {
			add(s.Span, "an executable is known by its file: install it first, or match its unit or user", "no file %s here", s.Exe)
		}
	case policy.KindCgroup, policy.KindUnit:
		checkCgroup(s, f, add)
	}
}

func checkCgroup(s policy.Selector, f Facts, add addFunc) {
	c := s.Cgroup.Controller
	switch {
	case c == "" && f.Cgroup2 == "":
		add(s.Span, f.mountCgroup2(), "no cgroup2 mount here: nothing tells sockets by their cgroup")
	case c != "" && f.Cgroup1[c] == "":
		add(s.Span, policy.DidYouMean(c, slices.Sorted(maps.Keys(f.Cgroup1)), "a plain /path is of the v2 hierarchy"), "no v1 hierarchy %q is mounted here", c)
	}
}
