package plan

import (
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// Names of the features, as [Features].Unknown has them. A kind of qdisc that
// could not be probed stands there by [FeatureQdisc].
const (
	FeatureTCX           = "tcx"
	FeatureClsBPF        = "cls_bpf"
	FeatureSKStorage     = "sk_storage"
	FeatureSockCreate    = "sock_create"
	FeatureRawTracepoint = "raw_tracepoint"
	FeaturePidfdGetfd    = "pidfd_getfd"
	FeatureBTF           = "BTF"
	FeatureNetPrio       = "net_prio"
	FeatureSockCgroup    = "sock_cgroup"
	FeatureAtomics       = "BPF atomics"
	FeatureTailCalls     = "BPF tail calls"
	FeatureSockOps       = "sock_ops"
	FeaturePolice        = "tc police"
	FeatureWeighs        = "htb size table"
	FeatureIfb           = "tc ifb"
	FeatureVRF           = "VRF"
)

// FeatureQdisc names the feature that is a kind of qdisc: "prio qdisc".
func FeatureQdisc(kind string) string { return kind + " qdisc" }

// A Finding is one thing that doctor looked at.
type Finding struct {
	ID    string       `json:"id"` // stable, unique among the findings of a host
	State FindingState `json:"state"`
	Text  string       `json:"text"`            // what was found
	Stops string       `json:"stops,omitempty"` // what does not work because of it; "" if everything does
	Mend  string       `json:"mend,omitempty"`  // one command, or one change of the policy, that mends it
}

// A FindingState is the state of a finding.
type FindingState string

// The states. What is unknown is never ok: it is a warning, or skipped where
// the privileges to look are missing. Skipped is also what nobody needs unless
// a policy asks for it.
const (
	FindingOK   FindingState = "ok"
	FindingWarn FindingState = "warn"
	FindingFail FindingState = "fail"
	FindingSkip FindingState = "skip"
)

// Doctor says what a host can keep of what a policy may promise: first what the
// kernel offers, then the strict-order ladder, then the rung of each group of
// devices that have a queue. The findings of a healthy host are twelve at most.
// Only the host's own part of the facts is looked at.
func Doctor(f Facts) []Finding {
	findings := []Finding{
		privileges(f),
		cgroup2(f),
		linkHook(f),
		f.demand("socket-cache", "socket storage is writable through a socket",
			"every promise to local workloads",
			"boot a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_CGROUP_BPF=y",
			feature{FeatureSKStorage, f.Features.SKStorage}),
		f.demand("new-sockets", "new sockets are tagged with who made them",
			"selectors user and exe; weir run; sockets opened after weir set",
			"boot a kernel with CONFIG_CGROUP_BPF=y and CONFIG_DEBUG_INFO_BTF=y",
			feature{FeatureSockCreate, f.Features.SockCreate}, feature{FeatureBTF, f.Features.BTF}),
		running(f),
		netPrio(f),
		limits(f),
		memory(f),
		routingDomains(f),
		ladderFinding(f),
	}
	return append(findings, linkFindings(f)...)
}

func privileges(f Facts) Finding {
	if f.Root {
		return Finding{ID: "privileges", State: FindingOK, Text: "apply may change this host"}
	}
	return Finding{
		ID: "privileges", State: FindingWarn, Text: "this user may not change the host, and not look at all of it",
		Stops: "apply, reset, set, run", Mend: "sudo weir doctor",
	}
}

func cgroup2(f Facts) Finding {
	if f.Cgroup2 != "" {
		return Finding{ID: "cgroup2", State: FindingOK, Text: "cgroup v2 is mounted on " + f.Cgroup2}
	}
	return Finding{
		ID: "cgroup2", State: FindingFail, Text: "cgroup v2 is mounted nowhere",
		Stops: "selectors cgroup, unit, user and exe; ingress and tcp-memory of workloads; weir set and weir run", Mend: f.mountCgroup2(),
	}
}

// mountCgroup2 is the command that mounts the v2 hierarchy, beside those of v1
// where there are any.
func (f Facts) mountCgroup2() string {
	if len(f.Cgroup1) > 0 {
		return "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified"
	}
	return "mount -t cgroup2 cgroup2 /sys/fs/cgroup"
}

// linkHook needs either of its two features.
func linkHook(f Facts) Finding {
	switch {
	case f.Features.TCX:
		return Finding{ID: "link-hook", State: FindingOK, Text: "programs on links by tcx"}
	case f.Features.ClsBPF:
		return Finding{ID: "link-hook", State: FindingOK, Text: "programs on links by clsact and cls_bpf; no tcx"}
	}
	return f.demand("link-hook", "", "every promise on a link", "modprobe -a sch_ingress cls_bpf",
		feature{FeatureTCX, false}, feature{FeatureClsBPF, false})
}

// running is what reaches processes that run already: the more that is lost first.
func running(f Facts) Finding {
	const id = "processes"
	births := f.demand(id, "", "cgroups that a pattern matches but are born later; children after weir set",
		"boot a kernel with CONFIG_BPF_EVENTS=y",
		feature{FeatureRawTracepoint, f.Features.RawTracepoint})
	if births.State != FindingOK {
		return births
	}
	return f.demand(id, "forks, new cgroups and open sockets of what runs are reached",
		"connections that were open before apply or weir set, where tag, user or executable decides",
		"boot Linux 5.6 or later",
		feature{FeaturePidfdGetfd, f.Features.PidfdGetfd})
}

// netPrio is what only a policy with via: net_prio needs, and what it costs all
// others where the kernel keeps a socket's v1 group and its v2 cgroup in one
// place, as it did before Linux 5.15.
func netPrio(f Facts) Finding {
	found := f.demand("net-prio", "cgroup v1 net_prio is there for via: net_prio", "via: net_prio", "",
		feature{FeatureNetPrio, f.Features.NetPrio})
	switch found.State {
	case FindingFail:
		return Finding{ID: found.ID, State: FindingSkip, Text: "kernel has no net_prio; only via: net_prio needs it"}
	case FindingOK:
		found = f.demand(found.ID, found.Text, "selectors cgroup and unit, on the whole host, from the first net_prio group on",
			"leave via: net_prio out of the policy", feature{FeatureSockCgroup, f.Features.SockCgroup})
		if found.State == FindingFail {
			found.State, found.Text = FindingWarn, "cgroup v1 net_prio is there, but its first group takes the v2 cgroup from all sockets"
		}
	}
	return found
}

// limits is what only a policy with egress or ingress needs.
func limits(f Facts) Finding {
	found := f.demand("limits", "workloads and links can be held to a rate: TCP is paced, a bucket holds the rest", "egress and ingress", "",
		feature{FeatureAtomics, f.Features.Atomics}, feature{FeatureTailCalls, f.Features.TailCalls}, feature{FeatureSockOps, f.Features.SockOps})
	if found.State == FindingFail {
		return Finding{ID: found.ID, State: FindingSkip, Text: found.Text + f.unpaced()}
	}
	return found
}

// memory is what only a policy with tcp-memory needs.
func memory(f Facts) Finding {
	found := f.demand("tcp-memory", "what TCP sockets hold in memory can be bounded", "tcp-memory", "",
		feature{FeatureSockOps, f.Features.SockOps}, feature{FeatureBTF, f.Features.BTF})
	if found.State == FindingFail {
		return Finding{ID: found.ID, State: FindingSkip, Text: found.Text + "; only tcp-memory needs it"}
	}
	return found
}

// needsVRF is what gives a kernel VRFs.
const needsVRF = "boot a kernel with CONFIG_NET_VRF; some distributions keep the module vrf in a package of more modules"

// routingDomains are what only a policy with vrfs needs.
func routingDomains(f Facts) Finding {
	found := f.demand("vrf", "links can move into VRFs, routing domains of their own", "vrfs", "",
		feature{FeatureVRF, f.Features.VRF})
	if found.State == FindingFail {
		return Finding{ID: found.ID, State: FindingSkip, Text: found.Text + "; only vrfs need it", Mend: needsVRF}
	}
	return found
}

// unpaced says what holds limits where the kernel can not pace, and which ones nothing does.
func (f Facts) unpaced() string {
	htb, police := f.Features.Qdiscs[string(policy.HTB)], f.Features.Police
	times, ifb := f.Features.Qdiscs[string(policy.FQ)] && f.Features.TailCalls, htb && f.Features.Ifb
	sent := times || htb
	var ways []string
	switch {
	case times && htb:
		ways = append(ways, "departure times over fq, or a class of htb on one link with a rate, hold what a workload sends")
	case times:
		ways = append(ways, "departure times over fq hold what a workload sends")
	case htb:
		ways = append(ways, "a class of htb holds what a workload sends on one link with a rate")
	}
	if police {
		ways = append(ways, "filters of tc drop what is above a link's own limit")
	}
	if ifb {
		ways = append(ways, "an ifb queues what arrives by a link above its limit")
	}
	need := "only egress and ingress need it"
	switch {
	case sent && police:
		need = "only ingress of workloads needs it"
	case ifb:
		need = "only ingress of workloads and egress of links need it"
	case sent:
		need = "only ingress and limits of links need it"
	case police:
		need = "only egress and ingress of workloads need it"
	}
	if len(ways) == 0 {
		return "; " + need
	}
	return ": " + strings.Join(append(ways, need), "; ")
}

// A feature is one that a finding depends on, and whether it was found.
type feature struct {
	name string
	has  bool
}

// demand is the finding about features that all have to be there.
func (f Facts) demand(id, text, stops, mend string, features ...feature) Finding {
	var absent, unknown []string
	for _, x := range features {
		if x.has {
			continue
		}
		if why, ok := f.Features.Unknown[x.name]; ok {
			unknown = append(unknown, x.name+" ("+why+")")
		} else {
			absent = append(absent, x.name)
		}
	}
	switch {
	case len(absent) > 0 && len(unknown) == 0:
		return Finding{ID: id, State: FindingFail, Text: "kernel has no " + strings.Join(absent, " and no "), Stops: stops, Mend: mend}
	case len(unknown) > 0:
		return f.unknown(id, "not known: "+strings.Join(unknown, ", "), stops)
	}
	return Finding{ID: id, State: FindingOK, Text: text}
}

// unknown is the finding about what could not be looked at.
func (f Facts) unknown(id, text, stops string) Finding {
	found := Finding{ID: id, State: FindingWarn, Text: text, Stops: "perhaps " + stops}
	if !f.Root {
		found.State = FindingSkip // the finding about privileges says how to look
	}
	return found
}
