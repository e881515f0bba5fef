package policy

import "net/netip"

// A Policy is one checked policy file.
type Policy struct {
	File      string     // name of the file, for messages
	Links     []Link     // sorted by name
	VRFs      []VRF      // sorted by name
	Workloads []Workload // in the order of the file
	Default   *Contract  // contract of everything that no workload claims; nil leaves it as it is
}

// A Link is a device at whose egress queue workloads compete.
type Link struct {
	Name      string
	Rate      Rate      // 0: the device's own speed
	Scheduler Scheduler // "" in the file means Auto
	Adopt     bool      // a foreign root qdisc may be replaced, and is put back by reset
	Egress    Bandwidth // what all packets together may take that leave by the link
	Ingress   Bandwidth // likewise, of those that arrive by it
	Span      Span      // of the name

	// SchedulerSpan is where the scheduler stands; zero where the file leaves it out.
	SchedulerSpan Span
}

// A Scheduler names the rung of the strict-order ladder that a link shall use.
type Scheduler string

// The schedulers, best first. Auto takes the best that the kernel, the device
// and the link's rate allow; None leaves the device's own qdisc alone.
const (
	Auto   Scheduler = "auto"
	MQPrio Scheduler = "mqprio"
	Prio   Scheduler = "prio"
	ETS    Scheduler = "ets"
	HTB    Scheduler = "htb"
	FQ     Scheduler = "fq"
	None   Scheduler = "none"
)

// A Contract is what a workload is promised.
type Contract struct {
	Priority  Priority
	Egress    Egress
	Ingress   Bandwidth
	TCPMemory TCPMemory
	VRF       string // to which new sockets are bound; "": they stay where their makers have them
	Span      Span   // of the first that there is of priority, egress, ingress, tcp-memory and vrf

	// TCPMemorySpan is where the key tcp-memory stands; zero where the file leaves it out.
	TCPMemorySpan Span

	VRFSpan Span // of the name of the VRF
}

// A Limit is the most of bandwidth, of packets, or of both. The zero Limit is none.
type Limit struct {
	Max    Rate       // in bits on the wire, the Ethernet header included; 0: no limit
	Burst  Size       // what may pass at once below Max of that which nobody can pace; 0: what Weir thinks right
	Method Method     // how Max shall be held, of what a workload sends
	PPS    PacketRate // of segments as they are on the wire; 0: no limit
}

// given reports whether anything is limited.
func (l Limit) given() bool { return l.Max != 0 || l.PPS != 0 }

// An Egress is what the packets of a workload may take on their way out, and get. Rates are
// in bits on the wire, the Ethernet header included.
type Egress struct {
	Limit                    // of all declared links together
	PerLink map[string]Limit // of one link alone
	Toward  []Toward         // to some prefixes, on all declared links together
	Min     map[string]Rate  // what they get of a link at least, whoever else wants it
	Weight  Weight           // as how many flows they count in limits that they share with others; 0: each flow is one
	Span    Span             // of the key
}

// A Toward is what the packets of a workload may take to some prefixes together. Of all
// prefixes of a workload that fit a packet's destination the longest counts.
type Toward struct {
	Prefixes []netip.Prefix // sorted, without bits behind them
	Limit
	Span Span // of the item
}

// A Bandwidth is what all packets of a link may take in one direction, or what the
// sockets of a workload may receive by all devices but loopback.
type Bandwidth struct {
	Limit
	Span Span // of the key
}

// A Workload is a named set of sockets or packets and its contract. A socket or
// packet belongs to it if any of its selectors matches.
type Workload struct {
	Name     string
	Match    []Selector
	Contract Contract
	Via      Via
	Beside   bool // of weir set, and not of the file: no link gets another queue unless it says so
	Span     Span // of the name
}

// Via names the mechanism that carries a workload's contract.
type Via string

// The mechanisms: Weir's own BPF programs, or cgroup v1's net_prio controller.
const (
	ViaBPF     Via = ""
	ViaNetPrio Via = "net_prio"
)

// Levels is the number of priorities; they run from 0 to Levels-1, the highest.
const Levels = 16

// A Priority is a level for every link, or a level per link with a default.
type Priority struct {
	Default Level
	PerLink map[string]Level
}

// A Level is a priority from 0 to 15, 15 the highest, or Unset.
type Level int8

// Unset is the level of a link on which nothing is promised.
const Unset Level = -1

// On returns the level that is promised on a link, or Unset.
func (p Priority) On(link string) Level {
	if level, ok := p.PerLink[link]; ok {
		return level
	}
	return p.Default
}

// Empty reports that nothing is promised on any link.
func (p Priority) Empty() bool { return p.Default == Unset && len(p.PerLink) == 0 }

// A Selector is one item of a workload's match list. Kind says which one of the
// other fields counts.
type Selector struct {
	Kind   Kind
	PID    uint32
	Cgroup Cgroup // of a unit, too
	User   string // a name or a decimal uid
	Exe    string // absolute path
	Flow   Flow
	Span   Span // of the value, or of all of a flow
}

// A Kind is the kind of a selector.
type Kind uint8

// The kinds in order of precedence: a packet that several workloads could claim
// belongs to the one whose selector comes first here. Units are cgroups: the
// nearest ancestor wins among the two, and among flows the longest match.
const (
	KindPID Kind = iota + 1
	KindCgroup
	KindUnit
	KindUser
	KindExe
	KindFlow
)

// A Cgroup is a glob over cgroup paths in one hierarchy. In a path component *
// stands for any run of characters and ? for one. A last component ** stands
// for any number of components, none included: "/batch/**" is /batch and
// everything below it. Units are the one form with a leading **: "/**/NAME" is
// every cgroup of that name, at any depth.
type Cgroup struct {
	// Controller is "" for the v2 hierarchy, or names a v1 hierarchy by one of
	// its controllers ("memory") or by its name ("name=systemd").
	Controller string
	Pattern    string // absolute, as in /proc/PID/cgroup: "/system.slice/nginx.service"
}

// A Flow matches packets by their headers. What is left out matches anything.
// Ports and Prefix each hold if either end of the packet fits, as in tcpdump.
type Flow struct {
	Protocol int16        // IP protocol number, or -1
	Ports    []PortRange  // any of them
	Prefix   netip.Prefix // the zero Prefix: any address
	DSCP     int8         // 0 to 63, or -1
}

// A PortRange holds both of its ends.
type PortRange struct{ First, Last uint16 }

// A Span is where something stands in the policy file: 1-based lines and
// columns, the end exclusive. The zero Span stands for no place.
type Span struct {
	Line, Column       int
	EndLine, EndColumn int
}

// A Rate is a bandwidth in bit/s.
type Rate uint64

// A PacketRate is a number of packets a second.
type PacketRate uint64
