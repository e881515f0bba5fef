package plan

import (
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// A Reading is what was counted up to one time. Two of them give [Speeds].
type Reading struct {
	When      time.Time
	Links     map[string]LinkReading
	Workloads map[string]WorkloadReading
	TCPMemory TCPMemory
}

// A LinkReading is what was counted at one link.
type LinkReading struct {
	Rate     policy.Rate        // as it is declared; 0: not known
	Sent     Traffic            // by the device's own counters
	Received Traffic            // likewise
	Dropped  uint64             // packets, by its queue
	Under    map[string]Traffic // what came to it under each contract, by the names of rows
}

// The rows that are no workload's. Together with those of workloads they are all that the
// devices count.
const (
	RowUnclaimed    = "(unclaimed)"
	RowUnclassified = "(unclassified)" // its headers do not say whose it is
	RowUnattributed = "(unattributed)" // what devices count beyond all others, or below 0 short of them
)

// A WorkloadReading is what was counted of one workload.
type WorkloadReading struct {
	Limits   map[string]LimitReading // by their terms
	Received *Traffic                // by its sockets; nil: nobody counts it. Its packets are not counted
	Memory   *MemoryJudged           // nil: no bound
	Sockets  int                     // of TCP
	Holds    uint64                  // bytes of TCP memory
}

// A LimitReading is what was counted below one limit.
type LimitReading struct {
	Most            uint64 // bits or packets a second; 0: a share, which has no most
	Packets         bool   // it is a limit of packets
	Ingress         bool   // of what sockets receive
	Passed          uint64 // bytes or packets
	Dropped, Marked uint64 // packets
}

// A Speed is what passes in a second.
type Speed struct {
	Bits    float64 `json:"bits_per_second"`
	Packets float64 `json:"packets_per_second"`
}

// minus is what is left of a speed without another.
func (s Speed) minus(t Speed) Speed { return Speed{s.Bits - t.Bits, s.Packets - t.Packets} }

func (s Speed) plus(t Speed) Speed { return Speed{s.Bits + t.Bits, s.Packets + t.Packets} }

// Speeds is what happened between two readings.
type Speeds struct {
	Seconds   float64     `json:"seconds"` // between them
	Links     []LinkSpeed `json:"links"`
	Rows      []Row       `json:"rows"` // those of workloads first, by name; those of nobody last
	TCPMemory TCPMemory   `json:"tcp_memory"`
}

// A LinkSpeed is what a link carries, by its device's own counters.
type LinkSpeed struct {
	Link     string      `json:"link"`
	Rate     policy.Rate `json:"rate,omitempty" jsonschema:"type=string"` // as it is declared
	Sent     Speed       `json:"sent"`
	Received Speed       `json:"received"`
	Dropped  float64     `json:"dropped_per_second"` // packets, by its queue
}

// Used is how much of its rate a link sends, in percent; 0 where that is not known.
func (l LinkSpeed) Used() float64 {
	if l.Rate == 0 {
		return 0
	}
	return 100 * l.Sent.Bits / float64(l.Rate)
}

// A Row is a workload, or one of the rows that are nobody's.
type Row struct {
	Workload string        `json:"workload"`
	Sent     Speed         `json:"sent"`               // on all links, as on the wire
	Links    []RowOnLink   `json:"links"`              // and on each on which it sends
	Received *Speed        `json:"received,omitempty"` // by its sockets; none: nobody counts it
	Limit    *LimitUse     `json:"limit,omitempty"`    // the one that is used most
	Dropped  float64       `json:"dropped_per_second"` // packets, by its limits
	Marked   float64       `json:"marked_per_second"`
	Memory   *MemoryJudged `json:"memory,omitempty"` // its bound, and what was seen of it
	Sockets  int           `json:"sockets"`          // of TCP
	Holds    uint64        `json:"holds"`            // bytes of TCP memory
}

// A RowOnLink is what a row sends on one link.
type RowOnLink struct {
	Link string `json:"link"`
	Sent Speed  `json:"sent"`
}

// A LimitUse is how much of a limit is used.
type LimitUse struct {
	Terms   string  `json:"terms"`
	Percent float64 `json:"percent"`
}
