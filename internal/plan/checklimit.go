package plan

import (
	"fmt"

	"github.com/weir-net/weir/internal/policy"
)

// checkLimit asks for what the programs count a limit with and pace TCP by. key is
// that of the limit.
func (f Facts) checkLimit(object, key string, at policy.Span, add addFunc) {
	if !f.Root {
		return
	}
	for _, why := range f.Features.NoLimits() {
		add(at, "leave "+key+" out; weir doctor tells what this kernel has", "%s: %s", object, why)
	}
}

// checkOwn asks for a rung of a link's own limit.
func (f Facts) checkOwn(object, key string, of policy.Bandwidth, add addFunc) {
	if of.Limit == (policy.Limit{}) || !f.Root {
		return
	}
	_, why := ChooseOwn(key, of.Limit, f)
	if why == "" {
		return
	}
	how := "no way to hold its " + key
	if of.Method != policy.MethodAuto {
		how = fmt.Sprintf("method %s can not hold its %s", of.Method, key)
	}
	add(of.Span, "leave "+key+" out; weir doctor tells what this kernel has", "%s: %s: %s", object, how, why)
}

// checkLimits asks for a rung of each limit of what a workload sends.
func (f Facts) checkLimits(p *policy.Policy, w policy.Workload, add addFunc) {
	if to := w.Contract.Egress.Toward; len(to) > 0 { // only pace knows where packets go
		f.checkLimit(fmt.Sprintf("workload %q", w.Name), "what goes to prefixes", to[0].Span, add)
	}
	for _, l := range sendLimits(p, w.Contract.Egress) {
		_, why := ChooseLimit(l.Limit, l.on, dividing(p), f)
		if why == "" || !f.Root {
			continue
		}
		of := "link " + l.link
		if l.link == EveryLink {
			of = "all links together"
		}
		how := "no way to hold its limit of " + of
		if l.Method != policy.MethodAuto {
			how = fmt.Sprintf("method %s can not hold its limit of %s", l.Method, of)
		}
		add(w.Contract.Egress.Span, "leave egress out; weir doctor tells what this kernel has", "workload %q: %s: %s", w.Name, how, why)
	}
}

// checkIngress asks for what holds sockets to what they may receive: a program of a
// cgroup, beside what any limit takes.
func (f Facts) checkIngress(p *policy.Policy, workload string, in policy.Bandwidth, add addFunc) {
	object := fmt.Sprintf("workload %q", workload)
	if f.Cgroup2 == "" {
		add(in.Span, f.mountCgroup2(), "%s: no cgroup2 mount here: no program sees what sockets receive", object)
	}
	f.checkLimit(object, "ingress", in.Span, add)
	if _, why := ChooseReceive(in.Limit, p.Links, dividing(p), f); f.Root && why != "" && len(f.Features.NoLimits()) == 0 {
		add(in.Span, "leave method out; weir doctor tells what this kernel has", "%s: method %s can not hold its ingress: %s", object, in.Method, why)
	}
}

// checkMemory asks for what bounds the memory of sockets: a program of a cgroup, which reads
// the kernel's own types.
func (f Facts) checkMemory(w policy.Workload, add addFunc) {
	object, at := fmt.Sprintf("workload %q", w.Name), w.Contract.TCPMemorySpan
	if f.Cgroup2 == "" {
		add(at, f.mountCgroup2(), "%s: no cgroup2 mount here: no program sees connections begin", object)
	}
	if !f.Root {
		return
	}
	for _, why := range f.Features.NoMemory() {
		add(at, "leave tcp-memory out; weir doctor tells what this kernel has", "%s: %s", object, why)
	}
}

// checkMemcg asks for the controller, and the cgroup: memcg holds what is there.
func (f Facts) checkMemcg(w policy.Workload, add addFunc) {
	object, of := fmt.Sprintf("workload %q", w.Name), w.Match[0]
	switch {
	case f.Cgroup1[of.Cgroup.Controller] == "": // told of its selector
	case !f.KmemTCP:
		add(w.Contract.TCPMemorySpan, "leave via out: BPF holds it on any kernel from 5.10 on",
			"%s: memcg can not hold its tcp-memory: kernel has no memory.kmem.tcp", object)
	case len(f.Cgroups[of.Cgroup]) == 0:
		add(of.Span, "make it first, or leave via out of tcp-memory", "%s: memcg can not hold its tcp-memory: no cgroup %s here", object, of.Cgroup)
	}
}

// NoMemory says what the kernel lacks to bound the memory of TCP sockets, in words; nothing
// where it can, or where that could not be found out.
func (f Features) NoMemory() (lacks []string) {
	if f.lacks(f.SockOps, FeatureSockOps) {
		lacks = append(lacks, "BPF programs of this kernel can not fit the buffers of sockets (no cgroup sock_ops)")
	}
	if f.lacks(f.BTF, FeatureBTF) {
		lacks = append(lacks, "BPF programs of this kernel can not see what sockets hold (no BTF)")
	}
	return lacks
}

// NoLimits says what the kernel lacks to hold limits, in words; nothing where it
// can, or where that could not be found out.
func (f Features) NoLimits() (lacks []string) {
	if f.lacks(f.Atomics, FeatureAtomics) {
		lacks = append(lacks, "BPF programs of this kernel can not count a limit together (no atomic fetch)")
	}
	if f.lacks(f.TailCalls, FeatureTailCalls) {
		lacks = append(lacks, "BPF programs of this kernel can not go on in the one that counts a limit (no tail calls from functions)")
	}
	if f.lacks(f.SockOps, FeatureSockOps) {
		lacks = append(lacks, "BPF programs of this kernel can not pace TCP (no cgroup sock_ops)")
	}
	return lacks
}

// CanLimit reports whether the kernel is known to have all that a limit takes.
func (f Features) CanLimit() bool { return f.Atomics && f.TailCalls && f.SockOps }
