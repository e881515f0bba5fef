package plan

import "github.com/weir-net/weir/internal/policy"

// Facts is what a host can do and what it has, as far as a policy needs it.
// The edge fills it in; nothing in it changes while a plan is made.
type Facts struct {
	Root      bool // running with the privileges that apply needs
	Links     map[string]LinkFacts
	Routing   Routing
	Features  Features
	Cgroup2   string                          // mount point of the v2 hierarchy; "" if none
	Cgroup1   map[string]string               // v1 controller or "name=X" -> mount point
	KmemTCP   bool                            // the v1 memory hierarchy holds what TCP sockets have in memory
	Parents1  map[uint64]uint64               // the tree of the policy's v1 hierarchy: id -> parent
	Users     map[string]uint32               // the policy's users that exist -> uid
	Exes      map[string]ExeID                // the policy's executables that exist
	PIDs      map[uint32]bool                 // the policy's processes that exist
	Cgroups   map[policy.Cgroup][]CgroupMatch // the policy's cgroup and unit patterns -> what they match now
	UserNames []string                        // all user names, for suggestions
	UnitNames []string                        // all unit cgroup names, for suggestions
}

// LinkFacts is what is known of one network device.
type LinkFacts struct {
	Index    int
	Speed    policy.Rate // as the driver reports it; 0: it does not know
	TXQueues int
	Ethernet bool   // packets at egress start with an Ethernet header
	Driver   string // as ethtool names it
	Ifb      bool   // its queue is for what arrives elsewhere
	VRF      bool   // it is a routing domain, whoever made it
	Root     Qdisc  // root qdisc, Weir's or not
	MQPrioHW bool   // the driver takes mqprio with hw 1
	Up       bool
}

// Features is what this kernel offers. A feature that could not be probed is
// not set, and Unknown says why.
type Features struct {
	Qdiscs        map[string]bool // kind -> the kernel has it
	TCX           bool
	ClsBPF        bool // clsact with cls_bpf
	SKStorage     bool // socket local storage, written through a socket's fd
	SockCreate    bool // cgroup/sock_create
	RawTracepoint bool // task and cgroup births are followed in the kernel
	PidfdGetfd    bool
	BTF           bool
	NetPrio       bool              // cgroup v1 net_prio can be mounted or is
	Atomics       bool              // BPF programs fetch and compare-exchange atomically
	TailCalls     bool              // BPF programs with functions go on in other programs
	Police        bool              // tc has filters that drop what is above a rate, and count what is not
	Weighs        bool              // htb counts packets as what they stand for
	Ifb           bool              // tc sends what arrives over devices of kind ifb
	SockOps       bool              // cgroup sock_ops programs are told of round trips, and set a pace
	VRF           bool              // there are routing domains of their own; known only where it was asked for
	SockCgroup    bool              // a socket knows its v2 cgroup beside its v1 net_prio and net_cls group
	Unknown       map[string]string // feature -> why it could not be probed
}

// An ExeID names an executable file as the kernel sees it.
type ExeID struct {
	Device uint32 // the kernel's dev_t: major << 20 | minor
	Inode  uint64
}

// A CgroupMatch is one cgroup that a pattern matches now.
type CgroupMatch struct {
	Path string // below the root of its hierarchy
	ID   uint64 // kernfs id
}
