package plan

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// healthy is a host that keeps every promise, but for a link whose speed nobody
// knows.
func healthy() Facts {
	return Facts{
		Root:    true,
		Cgroup2: "/sys/fs/cgroup",
		Features: Features{
			Qdiscs: map[string]bool{"mqprio": true, "prio": true, "ets": true, "htb": true, "fq": true, "fq_codel": true},
			TCX:    true, ClsBPF: true, SKStorage: true, SockCreate: true, RawTracepoint: true, PidfdGetfd: true,
			BTF: true, NetPrio: true, SockCgroup: true, Atomics: true, TailCalls: true, SockOps: true, VRF: true,
		},
		Links: map[string]LinkFacts{
			"eth0":  {Up: true, Speed: 1e9, TXQueues: 8, MQPrioHW: true, Root: Qdisc{Kind: "mq"}},
			"eth1":  {Up: true, Speed: 1e9, TXQueues: 1, Root: Qdisc{Kind: "fq_codel"}},
			"wlan":  {Up: true, TXQueues: 1, Root: Qdisc{Kind: "fq_codel"}},
			"weir2": {Up: true, Ifb: true, TXQueues: 1, Root: Qdisc{Kind: "htb"}},
			"lo":    {Up: true, TXQueues: 1, Root: Qdisc{Kind: "noqueue"}},
			"eth2":  {TXQueues: 1, Root: Qdisc{Kind: "noop"}},
		},
	}
}

func TestDoctorOfAHealthyHost(t *testing.T) {
	f := healthy()
	delete(f.Links, "wlan")
	findings := Doctor(f)
	if len(findings) > 13 {
		t.Errorf("%d findings, 13 are enough", len(findings))
	}
	seen := map[string]bool{}
	for _, f := range findings {
		if f.State != FindingOK || f.Stops != "" || f.Mend != "" {
			t.Errorf("not ok: %+v", f)
		}
		if seen[f.ID] || f.ID == "" || f.Text == "" || strings.Contains(f.Text, "\n") {
			t.Errorf("id twice, or no line: %+v", f)
		}
		seen[f.ID] = true
	}
}

func TestDoctor(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Facts)
		want  Finding // compared by what is set in it; State "" means: no such finding
	}{
		{"not root", func(f *Facts) { f.Root = false },
			Finding{ID: "privileges", State: FindingWarn, Stops: "apply, reset, set, run", Mend: "sudo weir doctor"}},
		{"no cgroup2", func(f *Facts) { f.Cgroup2 = "" },
			Finding{ID: "cgroup2", State: FindingFail, Mend: "mount -t cgroup2 cgroup2 /sys/fs/cgroup"}},
		{"no cgroup2 beside v1", func(f *Facts) { f.Cgroup2, f.Cgroup1 = "", map[string]string{"memory": "/sys/fs/cgroup/memory"} },
			Finding{ID: "cgroup2", State: FindingFail, Mend: "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified"}},
		{"no tcx", func(f *Facts) { f.Features.TCX = false },
			Finding{ID: "link-hook", State: FindingOK, Text: "programs on links by clsact and cls_bpf; no tcx"}},
		{"no hook", func(f *Facts) { f.Features.TCX, f.Features.ClsBPF = false, false },
			Finding{ID: "link-hook", State: FindingFail, Text: "kernel has no tcx and no cls_bpf",
				Stops: "every promise on a link", Mend: "modprobe -a sch_ingress cls_bpf"}},
		{"hook half unknown", func(f *Facts) { f.Features.TCX, f.Features.ClsBPF = false, false; f.unknownTo("tcx", "busy") },
			Finding{ID: "link-hook", State: FindingWarn, Text: "not known: tcx (busy)", Stops: "perhaps every promise on a link"}},
		{"no storage", func(f *Facts) { f.Features.SKStorage = false },
			Finding{ID: "socket-cache", State: FindingFail, Text: "kernel has no sk_storage"}},
		{"no BTF", func(f *Facts) { f.Features.BTF = false },
			Finding{ID: "new-sockets", State: FindingFail, Text: "kernel has no BTF"}},
		{"no tracepoints", func(f *Facts) { f.Features.RawTracepoint = false },
			Finding{ID: "processes", State: FindingFail, Mend: "boot a kernel with CONFIG_BPF_EVENTS=y"}},
		{"unknown to root", func(f *Facts) { f.Features.PidfdGetfd = false; f.unknownTo("pidfd_getfd", "operation not permitted") },
			Finding{ID: "processes", State: FindingWarn, Text: "not known: pidfd_getfd (operation not permitted)"}},
		{"unknown to others", func(f *Facts) {
			f.Root, f.Features.PidfdGetfd = false, false
			f.unknownTo("pidfd_getfd", "operation not permitted")
		}, Finding{ID: "processes", State: FindingSkip, Text: "not known: pidfd_getfd (operation not permitted)"}},
		{"no net_prio", func(f *Facts) { f.Features.NetPrio = false },
			Finding{ID: "net-prio", State: FindingSkip, Text: "kernel has no net_prio; only via: net_prio needs it"}},
		{"net_prio unknown", func(f *Facts) { f.Features.NetPrio = false; f.unknownTo("net_prio", syscall.ENOSYS.Error()) },
			Finding{ID: "net-prio", State: FindingWarn, Stops: "perhaps via: net_prio"}},
		{"net_prio or cgroup2", func(f *Facts) { f.Features.SockCgroup = false },
			Finding{ID: "net-prio", State: FindingWarn, Text: "cgroup v1 net_prio is there, but its first group takes the v2 cgroup from all sockets",
				Stops: "selectors cgroup and unit, on the whole host, from the first net_prio group on", Mend: "leave via: net_prio out of the policy"}},
		{"net_prio or cgroup2 unknown", func(f *Facts) { f.Features.SockCgroup = false; f.unknownTo("sock_cgroup", "no BTF") },
			Finding{ID: "net-prio", State: FindingWarn, Text: "not known: sock_cgroup (no BTF)",
				Stops: "perhaps selectors cgroup and unit, on the whole host, from the first net_prio group on"}},
		{"tcp memory", func(*Facts) {},
			Finding{ID: "tcp-memory", State: FindingOK, Text: "what TCP sockets hold in memory can be bounded"}},
		{"no bound of tcp memory", func(f *Facts) { f.Features.SockOps, f.Features.BTF = false, false },
			Finding{ID: "tcp-memory", State: FindingSkip, Text: "kernel has no sock_ops and no BTF; only tcp-memory needs it"}},
		{"VRFs", func(*Facts) {},
			Finding{ID: "vrf", State: FindingOK, Text: "links can move into VRFs, routing domains of their own"}},
		{"no VRFs", func(f *Facts) { f.Features.VRF = false },
			Finding{ID: "vrf", State: FindingSkip, Text: "kernel has no VRF; only vrfs need it",
				Mend: "boot a kernel with CONFIG_NET_VRF; some distributions keep the module vrf in a package of more modules"}},
		{"VRFs unknown", func(f *Facts) { f.Features.VRF = false; f.unknownTo("VRF", "busy") },
			Finding{ID: "vrf", State: FindingWarn, Text: "not known: VRF (busy)", Stops: "perhaps vrfs"}},
		{"limits", func(*Facts) {},
			Finding{ID: "limits", State: FindingOK, Text: "workloads and links can be held to a rate: TCP is paced, a bucket holds the rest"}},
		{"no atomics", func(f *Facts) { f.Features.Atomics = false },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics: departure times over fq, or a class of htb on one link with a rate, hold what a workload sends; only ingress and limits of links need it"}},
		{"no tail calls", func(f *Facts) { f.Features.TailCalls = false },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF tail calls: a class of htb holds what a workload sends on one link with a rate; only ingress and limits of links need it"}},
		{"no limits at all", func(f *Facts) { f.Features.Atomics, f.Features.TailCalls, f.Features.SockOps = false, false, false },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics and no BPF tail calls and no sock_ops: a class of htb holds what a workload sends on one link with a rate; only ingress and limits of links need it"}},
		{"no atomics, and police", func(f *Facts) { f.Features.Atomics, f.Features.Police = false, true },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics: departure times over fq, or a class of htb on one link with a rate, hold what a workload sends; filters of tc drop what is above a link's own limit; only ingress of workloads needs it"}},
		{"no atomics, no htb, and police", func(f *Facts) {
			f.Features.Atomics, f.Features.Police, f.Features.Qdiscs = false, true, map[string]bool{"prio": true}
		},
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics: filters of tc drop what is above a link's own limit; only egress and ingress of workloads need it"}},
		{"no atomics, and an ifb", func(f *Facts) { f.Features.Atomics, f.Features.Ifb = false, true },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics: departure times over fq, or a class of htb on one link with a rate, hold what a workload sends; an ifb queues what arrives by a link above its limit; only ingress of workloads and egress of links need it"}},
		{"no atomics, police and an ifb", func(f *Facts) { f.Features.Atomics, f.Features.Police, f.Features.Ifb = false, true, true },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics: departure times over fq, or a class of htb on one link with a rate, hold what a workload sends; filters of tc drop what is above a link's own limit; an ifb queues what arrives by a link above its limit; only ingress of workloads needs it"}},
		{"no atomics, no htb, and an ifb", func(f *Facts) {
			f.Features.Atomics, f.Features.Ifb, f.Features.Qdiscs = false, true, map[string]bool{"prio": true}
		},
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics; only egress and ingress need it"}},
		{"no limits, and no htb", func(f *Facts) { f.Features.Atomics, f.Features.Qdiscs = false, map[string]bool{"prio": true} },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics; only egress and ingress need it"}},
		{"no limits, and no fq", func(f *Facts) { f.Features.Atomics = false; delete(f.Features.Qdiscs, "fq") },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics: a class of htb holds what a workload sends on one link with a rate; only ingress and limits of links need it"}},
		{"no limits, and no htb but fq", func(f *Facts) { f.Features.Atomics = false; delete(f.Features.Qdiscs, "htb") },
			Finding{ID: "limits", State: FindingSkip, Text: "kernel has no BPF atomics: departure times over fq hold what a workload sends; only ingress and limits of links need it"}},
		{"limits unknown", func(f *Facts) { f.Features.SockOps = false; f.unknownTo("sock_ops", "busy") },
			Finding{ID: "limits", State: FindingWarn, Text: "not known: sock_ops (busy)", Stops: "perhaps egress and ingress"}},

		{"all rungs", func(*Facts) {},
			Finding{ID: "strict-order", State: FindingOK, Text: "kernel has mqprio, prio, ets, htb, fq"}},
		{"htb alone", only("htb"),
			Finding{ID: "strict-order", State: FindingOK, Text: "kernel has htb; lacks mqprio, prio, ets, fq"}},
		{"fq alone", only("fq"),
			Finding{ID: "strict-order", State: FindingWarn, Mend: "modprobe sch_prio"}},
		{"no rung", only(),
			Finding{ID: "strict-order", State: FindingFail, Text: "lacks mqprio, prio, ets, htb, fq",
				Stops: "strict order on a full line", Mend: "modprobe -a sch_prio sch_htb"}},
		{"a rung unknown", func(f *Facts) { only()(f); f.unknownTo("prio qdisc", "busy") },
			Finding{ID: "strict-order", State: FindingWarn, Text: "lacks mqprio, ets, htb, fq; not known: prio"}},
		{"qdiscs not probed", func(f *Facts) { f.Features.Qdiscs = nil; f.Root = false },
			Finding{ID: "strict-order", State: FindingSkip}},

		{"link in hardware", func(*Facts) {},
			Finding{ID: "link.eth0", State: FindingOK, Text: "eth0: mqprio, 8 classes"}},
		{"link with prio", func(*Facts) {},
			Finding{ID: "link.eth1", State: FindingOK, Text: "eth1: prio, 16 classes"}},
		{"link with prio and no speed", func(*Facts) {},
			Finding{ID: "link.wlan", State: FindingWarn, Stops: "strict order there, unless it is the device that makes packets wait",
				Text: "wlan: prio, 16 classes; not promised: the device reports no speed and the policy no rate: where nothing queues, nothing is ordered",
				Mend: "add its rate to the policy: links: {wlan: {rate: 100Mbit}}"}},
		{"link with prio and many queues", func(f *Facts) {
			l := f.Links["eth1"]
			l.TXQueues = 4
			f.Links["eth1"] = l
		}, Finding{ID: "link.eth1", State: FindingOK,
			Text: "eth1: prio, 16 classes; perhaps its 4 TX queues take mqprio in hardware: scheduler: mqprio tries it, and may reset the device"}},
		{"link with htb", only("htb", "fq_codel"),
			Finding{ID: "link.eth0", State: FindingOK,
				Text: "eth0, eth1: htb, 8 classes; not promised: two neighbouring priorities share a class; every class keeps a tiny floor, even the one that should rest"}},
		{"link with htb and no fq_codel", only("htb"),
			Finding{ID: "link.eth0", State: FindingOK,
				Text: "eth0, eth1: htb, 8 classes; not promised: two neighbouring priorities share a class; every class keeps a tiny floor, even the one that should rest; " +
					"two flows of a class meet in one of its 8 leaves 1 time in 8, and then share it unevenly (fq_codel would mend that)"}},
		{"link without speed", only("htb"),
			Finding{ID: "link.wlan", State: FindingWarn, Text: "wlan: no rung without a rate", Mend: "add its rate to the policy: links: {wlan: {rate: 100Mbit}}"}},
		{"link with fq", only("fq", "fq bands"),
			Finding{ID: "link.eth0", State: FindingWarn,
				Text:  "eth0, eth1, wlan: fq, 3 classes; not promised: fq's bands are weighted, not strict",
				Stops: "strict order there"}},
		{"links not probed", func(f *Facts) { f.Features.Qdiscs = nil },
			Finding{ID: "link.eth0", State: FindingWarn, Text: "eth0, eth1, wlan: not known", Stops: "perhaps strict order there"}},
		{"links to others", func(f *Facts) {
			f.Root = false
			only()(f)
			f.unknownTo("htb qdisc", "operation not permitted")
		}, Finding{ID: "link.eth0", State: FindingSkip, Text: "eth0, eth1, wlan: not known"}},
		{"link on a rung, others unknown", func(f *Facts) { only("prio", "fq_codel")(f); f.unknownTo("htb qdisc", "busy") },
			Finding{ID: "link.eth0", State: FindingOK, Text: "eth0, eth1: prio, 16 classes"}},
		{"link without queue", func(*Facts) {}, Finding{ID: "link.lo"}},
		{"link down", func(*Facts) {}, Finding{ID: "link.eth2"}},
		{"many links", func(f *Facts) {
			only("prio", "fq_codel")(f)
			for i := range 6 {
				f.Links[fmt.Sprintf("a%d", i)] = LinkFacts{Up: true, Speed: 1e9, TXQueues: 1, Root: Qdisc{Kind: "mq"}}
			}
		}, Finding{ID: "link.a0", State: FindingOK, Text: "a0, a1, a2, a3 and 4 more: prio, 16 classes"}},
		{"no links", func(f *Facts) { f.Links = nil },
			Finding{ID: "link", State: FindingSkip, Text: "no device with a queue is up"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy()
			tt.spoil(&f)
			got := Finding{ID: tt.want.ID}
			for _, x := range Doctor(f) {
				if x.ID == tt.want.ID {
					got = x
				}
			}
			for field, unset := range map[*string]bool{
				&got.Text: tt.want.Text == "", &got.Stops: tt.want.Stops == "", &got.Mend: tt.want.Mend == "",
			} {
				if unset {
					*field = ""
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever is taken from a host: what is not there or not known is never ok,
// and a finding that is not ok says what stops.
func TestDoctorNeverCallsTheUnknownOK(t *testing.T) {
	for _, root := range []bool{true, false} {
		f := Facts{Root: root, Links: healthy().Links}
		for _, name := range []string{
			FeatureTCX, FeatureClsBPF, FeatureSKStorage, FeatureSockCreate, FeatureRawTracepoint, FeaturePidfdGetfd,
			FeatureBTF, FeatureNetPrio, FeatureSockCgroup, FeatureAtomics, FeatureTailCalls, FeatureSockOps, FeatureVRF,
		} {
			f.unknownTo(name, "who knows")
		}
		for _, x := range Doctor(f) {
			switch {
			case x.ID == "privileges" && root:
			case x.State == FindingOK, x.Stops == "":
				t.Errorf("root %v: %+v", root, x)
			case x.State == FindingFail && x.ID != "cgroup2":
				t.Errorf("root %v: unknown is no failure: %+v", root, x)
			}
		}
	}
}

func (f *Facts) unknownTo(name, why string) {
	unknown := maps.Clone(f.Features.Unknown)
	if unknown == nil {
		unknown = map[string]string{}
	}
	unknown[name] = why
	f.Features.Unknown = unknown
}

func only(kinds ...string) func(*Facts) {
	return func(f *Facts) {
		f.Features.Qdiscs = map[string]bool{}
		for _, k := range kinds {
			f.Features.Qdiscs[k] = true
		}
	}
}
