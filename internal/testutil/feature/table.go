package feature

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf"
)

// Names lists every feature that [Has] knows, in order.
func Names() []string {
	return slices.Sorted(maps.Keys(table()))
}

// table is every probe by its name. Adding a feature is adding a line.
func table() map[string]probe {
	t := map[string]probe{
		"root":              root,
		"2 CPUs":            cpus(2),
		"BTF":               file("/sys/kernel/btf/vmlinux"),
		"MPTCP":             file("/proc/sys/net/mptcp/enabled"),
		"tun link":          file("/dev/net/tun"),
		"CPU latency bound": file("/dev/cpu_dma_latency"),
		"virtual clock":     virtualClock, // test/vm/run --clock virtual

		"user namespace": file("/proc/self/ns/user"),

		"initial network namespace": file("/proc/sys/net/core/dev_weight"), // no other shows it
		"initial pid namespace":     initialPIDs,

		"/etc/protocols": file("/etc/protocols"),

		"pidfd":      pidfd,
		"cgroup2":    cgroup2,
		"net_prio":   cgroup1("net_prio"),
		"net_cls":    cgroup1("net_cls"),
		"v1 memory":  mounted1("memory"),
		"v1 cpuset":  mounted1("cpuset"),
		"v2 memory":  controls2("memory"),
		"kmem.tcp":   kmemTCP,
		"overlay":    overlay,
		"fq bands":   fqBands,
		"tcx":        tcx,
		"sk_storage": skStorage,

		"kernel 6.1":  cached("vm/kernels/6.1/release"), // test/vm/fetch 6.1
		"kernel 6.12": cached("vm/kernels/6.12/release"),
		"docker":      cached("docker/release"), // test/fetch-docker

		"raw_tracepoint": loads(ebpf.RawTracepoint, 0),
		"sock_create":    loads(ebpf.CGroupSock, ebpf.AttachCGroupInetSockCreate),
		"cgroup_skb":     loads(ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress),
		"sock_cgroup":    sockCgroup,
		"sock_ops":       unlocked(loads(ebpf.SockOps, ebpf.AttachCGroupSockOps)),
		"BPF atomics":    unlocked(atomics),
		"BPF tail calls": unlocked(tailCalls),
		"late sock_ops":  unlocked(lateSockOps),
		"late sockopts":  unlocked(lateSockopts),
	}
	for _, name := range []string{"bbr", "cubic"} {
		t[name+" congestion control"] = congestion(name)
	}
	for _, kind := range []string{
		"bfifo", "cake", "clsact", "ets", "fq", "fq_codel", "htb", "ingress", "mq", "mqprio",
		"netem", "pfifo", "pfifo_fast", "prio", "sfq", "tbf",
	} {
		t[kind+" qdisc"] = qdisc(kind)
	}
	for _, kind := range []string{"basic", "bpf", "flower", "fw", "matchall", "u32"} {
		t[kind+" classifier"] = classifier(kind)
	}
	for _, kind := range []string{"gact", "mirred", "police", "skbedit"} {
		t[kind+" action"] = action(kind)
	}
	for _, kind := range []string{"bridge", "dummy", "ifb", "netdevsim", "veth", "vlan", "vrf"} {
		t[kind+" link"] = device(kind)
	}
	for _, name := range []string{
		"bpftool", "chronyd", "clang-14", "curl", "ethtool", "getent", "git", "ip", "iperf3", "iptables", "llvm-strip-14",
		"nft", "nsenter", "openssl", "perf", "ping", "python3", "qemu-system-x86_64", "scp", "sh", "ss", "ssh", "ssh-keygen", "sshd", "systemd-box", "tc", "unshare",
	} {
		t[name] = tool(name)
	}
	return t
}
