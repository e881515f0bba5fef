package plan

import (
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Verdict says of a promise whether it is kept.
type Verdict string

// The verdicts. Unprovable is a promise that nothing contradicts and nothing
// here can show: the reason is in its evidence.
const (
	Kept       Verdict = "kept"
	Broken     Verdict = "broken"
	Unprovable Verdict = "not provable here"
)

// Traffic is what passed under one contract on one link.
type Traffic struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"` // on the wire, link-layer headers included
}

// A Judgement is one promise held against what the kernel says. It is about
// one link, or about EveryLink: what net_prio carries to all that have no
// priority of their own, what all links together may carry, and what sockets may
// receive.
type Judgement struct {
	Workload string            `json:"workload"` // "": whatever the link carries
	Link     string            `json:"link"`
	To       string            `json:"to,omitempty"`                           // of a limit of what goes to prefixes: "to 10.0.0.0/8"
	Promise  string            `json:"promise"`                                // PromisePriority, PromiseEgress, PromiseIngress, PromiseShare, PromiseMemory or PromiseVRF
	Priority policy.Level      `json:"priority"`                               // -1, Unset, of a limit and a share
	Max      policy.Rate       `json:"max,omitempty" jsonschema:"type=string"` // of a limit of bandwidth
	PPS      policy.PacketRate `json:"pps,omitempty"`                          // of a limit of packets
	Min      policy.Rate       `json:"min,omitempty" jsonschema:"type=string"` // of a share
	Verdict  Verdict           `json:"verdict"`
	Evidence string            `json:"evidence"`
	Traffic  Traffic           `json:"traffic"`          // at ingress and to prefixes its packets are not counted, nor below a limit of packets its bytes
	Memory   *MemoryJudged     `json:"memory,omitempty"` // of a bound of TCP memory
	VRF      string            `json:"vrf,omitempty"`    // that is promised, or to which new sockets of a workload are bound
}

// MemoryJudged is a bound of TCP memory and what was seen of it.
type MemoryJudged struct {
	Bound policy.TCPMemory `json:"bound"`
	Pool  Pool             `json:"pool"`
}

// Full is how much of the bound is in use, in percent.
func (m MemoryJudged) Full() float64 {
	return 100 * float64(m.Pool.May) / float64(max(m.Bound.Max, 1))
}

// The promises that are judged.
const (
	PromisePriority = "priority"
	PromiseEgress   = "egress"
	PromiseIngress  = "ingress"
	PromiseShare    = "share"
	PromiseMemory   = "tcp-memory"
	PromiseVRF      = "vrf"
)

// Terms puts into words what is promised: "priority 15", "at least 20Mbit", "at most
// 50Mbit", "to 10.0.0.0/8 at most 50Mbit", "ingress at most 20Mbit"; of a link, either limit with its direction.
func (j Judgement) Terms() string {
	switch {
	case j.Promise == PromisePriority:
		return "priority " + j.Priority.String()
	case j.Promise == PromiseShare:
		return atLeast(j.Min)
	case j.Promise == PromiseVRF:
		return BoundTerms(j.VRF)
	case j.Promise == PromiseMemory:
		return MemoryTerms(j.Memory.Bound)
	case j.Workload == "" || j.Promise == PromiseIngress:
		return j.Promise + " " + j.held().String()
	}
	return strings.TrimSpace(j.To + " " + j.held().String())
}

// held is the limit that is judged.
func (j Judgement) held() Limit { return Limit{Max: j.Max, PPS: j.PPS} }

// EveryLink stands for the devices of the host in a [Judgement].
const EveryLink = "*"
