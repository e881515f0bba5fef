package plan

import (
	"github.com/weir-net/weir/internal/policy"
)

// A ContractID numbers a contract in the kernel's tables.
type ContractID uint16

// Contracts with a meaning of their own; every other id belongs to a workload.
const (
	Unclaimed    ContractID = 0 // packets that no workload claims
	Unclassified ContractID = 1 // packets whose headers do not say whose they are
	// LadderID + p says what packets of priority p get written that keep theirs.
	LadderID ContractID = 2
	FirstID  ContractID = LadderID + policy.Levels
)

// MaxContracts is how many workloads can have a contract at one time.
const MaxContracts = 1<<16 - int(FirstID)

// A Contract names a workload's contract in the kernel. Its Serial tells it
// from earlier contracts of the same number, which tags may still carry.
type Contract struct {
	ID     ContractID
	Serial uint16
}

// Tag is the contract as it is written into sockets and tasks.
func (c Contract) Tag() uint32 { return uint32(c.Serial)<<16 | uint32(c.ID) }

// Rules is how packets find their contract: the content of every table that the
// programs look things up in.
type Rules struct {
	Cgroups  map[uint64]ContractID // v2 cgroups that exist, by kernfs id
	Cgroups1 map[uint64]ContractID // v1 cgroups that exist, below Controller1
	Users    map[uint32]ContractID
	Exes     map[ExeID]ContractID
	Tuples   []Tuple // the most specific first
	Flows    map[FlowKey]ContractID
	Births   Births
	// Limits are the contracts that may take only so much of all links together.
	Limits map[ContractID]Limit
	// Toward is what contracts may send to prefixes, on all links together.
	Toward map[PrefixOf]Toward
	// Blocs are the limits in which all packets of a contract with a weight count as so many
	// flows, each with that contract as its Member.
	Blocs map[Owner]Weight
	// Arriving is what the sockets of contracts may receive: by all devices but
	// loopback together, in all network namespaces.
	Arriving map[ContractID]Limit
	// Memory is what the TCP sockets of contracts may hold together.
	Memory map[ContractID]policy.TCPMemory
	// Controller1 is the v1 controller that the policy's v1 paths are of; "" if none.
	Controller1 string
}

// Controller1 is the v1 controller that a policy's v1 paths are of; "" if it has none.
func Controller1(p *policy.Policy) string {
	for _, w := range p.Workloads {
		for _, s := range w.Match {
			if w.Via == policy.ViaBPF && s.Cgroup.Controller != "" {
				return s.Cgroup.Controller
			}
		}
	}
	return ""
}

// Births are the patterns that the kernel itself holds against the path of
// every new cgroup. Keys of a v1 hierarchy start with a "1".
type Births struct {
	Paths    map[string]ContractID // whole paths
	Prefixes map[string]ContractID // the rest is one component
	Names    map[string]ContractID // last components
}

// Fields says which header fields a tuple looks at.
type Fields uint8

// The fields, numbered as the kernel side numbers them.
const (
	FieldAddress Fields = 1 << iota
	FieldPort
	FieldProtocol
	FieldDSCP
)

// A Tuple is a shape of flow rule: which fields it looks at, and how many bits
// of the address. IPv4 addresses count as mapped into IPv6.
type Tuple struct {
	Fields Fields
	Bits   uint8 // 0 to 128
}

// A FlowKey is one flow rule. Fields that its tuple does not look at are zero.
type FlowKey struct {
	Tuple    uint16 // index into Rules.Tuples
	Family   uint8  // 4 or 6 if the tuple looks at an address
	Protocol uint8
	DSCP     uint8
	Port     uint16
	Address  [16]byte
}

// LinkRules is what the contracts mean on one link.
type LinkRules struct {
	// Contracts holds for each contract what is written into skb->priority, the
	// ladder of the packets that keep their priority included.
	Contracts  map[ContractID]Promise
	L2         uint8  // bytes before the network header: 14 or 0
	BucketMask uint32 // what of a flow's hash is added to a class id; 0: nothing
	NoQueue    bool   // the link has no queue of ours, so that the ladder need not be asked
	// What all packets together may take that leave by the link, or arrive by it.
	Egress, Ingress Limit
}

// A Promise is what a contract means on one link.
type Promise struct {
	Priority uint32 // skb->priority as it is written, or Keep
	Serial   uint16
	Limited  bool  // the contract has one of Rules.Limits
	Toward   bool  // the contract has some of Rules.Toward
	Here     Limit // what it may take of this link alone
	Weighted bool  // the contract has a weight in limits that it shares with others
	Answers  bool  // what its sockets answer waits for its time, by one of Rules.Arriving
}

// Keep leaves the priority that others gave a packet.
const Keep uint32 = 0xffffffff
