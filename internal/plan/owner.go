package plan

// An Owner is whose a limit is: a contract's, of all links together (Link 0), there of
// all or of what goes to some prefixes (Toward), of one link alone, or of what its sockets
// receive (AtSockets); or, with OwnEgress and OwnIngress, a link's. In one place bandwidth
// and packets have one each.
type Owner struct {
	Contract ContractID
	Link     int    // index of its device, 0 or AtSockets
	Packets  bool   // it is a limit of packets
	Toward   uint16 // number of the contract's prefixes; 0: wherever it sends
	// Member is the contract whose packets are a bloc in that limit; 0: this is the limit
	// itself, whose contract may be a link's.
	Member ContractID
}

// Limit is the owner of the limit in which a bloc is.
func (o Owner) Limit() Owner {
	o.Member = 0
	return o
}

// AtSockets stands in an [Owner] for where packets are handed to their sockets.
const AtSockets = -1

// The owners of the limits that a link itself has: no workload has these numbers.
const (
	OwnEgress  = Unclaimed
	OwnIngress = Unclassified
)
