package cost

import (
	"cmp"
	"slices"
	"time"
)

// A Report says what networking took in an interval. Times are in seconds of CPU time.
type Report struct {
	SchemaVersion string      `json:"schema_version"`
	Seconds       float64     `json:"seconds"`    // that it covers
	Rung          Rung        `json:"rung"`       // by what it was measured
	Accounting    Accounting  `json:"accounting"` // where the kernel itself puts this time
	Total         Share       `json:"total"`      // on all CPUs
	CPUs          []CPUShare  `json:"cpus"`
	Victims       []Party     `json:"victims"` // who lost or spent most comes first
	Owners        []Party     `json:"owners"`  // likewise
	Matrix        []Cell      `json:"matrix"`  // what is not 0, the largest first
	Interrupts    Interrupts  `json:"interrupts"`
	Softirqs      SoftirqRuns `json:"softirqs"`
	Polls         Polls       `json:"polls"`
	Meter         float64     `json:"meter"`      // what the meter's own programs took
	MeterPart     float64     `json:"meter_part"` // of the time, in which they ran: what they saw stands for the rest
	Warnings      []string    `json:"warnings,omitempty"`
}

// A Rung is by what costs are measured.
type Rung string

// The rungs.
const (
	ByMeter    Rung = "bpf"    // programs of ours
	ByCounters Rung = "procfs" // what the kernel counts by itself: softirqs of all kinds together, nobody's
)

// A Share is CPU time by what it went to.
type Share struct {
	IRQ     float64 `json:"irq"`
	RX      float64 `json:"net_rx"`
	TX      float64 `json:"net_tx"`
	Other   float64 `json:"other_softirqs"` // in which packets went: TASKLET, TIMER, HRTIMER
	Send    float64 `json:"send"`
	Receive float64 `json:"receive"`
	Thread  float64 `json:"napi_thread"`
	All     float64 `json:"all"`
}

// A CPUShare is what happened on one CPU.
type CPUShare struct {
	CPU int `json:"cpu"`
	Share
	Ksoftirqd float64 `json:"ksoftirqd"` // of the softirqs: in the kernel's own thread for softirqs
	Idle      float64 `json:"idle"`      // of irq and the softirqs: while nobody else wanted the CPU
	Stolen    float64 `json:"stolen"`    // likewise: from tasks, in their name
	Busy      float64 `json:"busy"`      // that the kernel says the CPU was not idle
	Softirqs  float64 `json:"softirqs"`  // of that, in softirqs of all kinds
	Squeezed  uint64  `json:"squeezed"`  // net_rx softirqs that ended before their work was done
}

// PartyKind is what a victim or owner is.
type PartyKind string

// The kinds of parties.
const (
	PartyWorkload     PartyKind = "workload"     // of the policy in force
	PartyCgroup       PartyKind = "cgroup"       // that no workload claims
	PartyTask         PartyKind = "task"         // a process
	PartyIdle         PartyKind = "idle"         // nobody was interrupted
	PartyKsoftirqd    PartyKind = "ksoftirqd"    // the kernel's threads for softirqs, who work for others
	PartyForwarded    PartyKind = "forwarded"    // packets that left by the device of this name
	PartyDropped      PartyKind = "dropped"      // packets that were thrown away
	PartyUnattributed PartyKind = "unattributed" // packets that reached no socket and no device
)

// A PartyID names a victim or an owner.
type PartyID struct {
	Kind     PartyKind `json:"kind"`
	Name     string    `json:"name"`
	PID      uint32    `json:"pid,omitempty"`      // of a task
	Workload string    `json:"workload,omitempty"` // of a task, where one claims it
}

// A Party is a victim or an owner, and its time.
type Party struct {
	PartyID
	Share
	Packets uint64 `json:"packets"` // on the wire
}

// A Cell is what one victim lost to one owner: of its time in interrupts, and its own calls.
type Cell struct {
	Victim  PartyID `json:"victim"`
	Owner   PartyID `json:"owner"`
	Seconds float64 `json:"seconds"`
	Packets uint64  `json:"packets"`
}

// Interrupts are hard ones that ask for NET_RX, of devices and of other CPUs.
type Interrupts struct {
	Count uint64  `json:"count"`
	Way   float64 `json:"way_microseconds"` // into each and out of it, which is in irq; 0: unknown
}

// SoftirqRuns are the softirqs that were handled.
type SoftirqRuns struct {
	RX           uint64  `json:"net_rx"`
	TX           uint64  `json:"net_tx"`
	Other        uint64  `json:"other"` // in which packets went
	Timed        uint64  `json:"timed"` // of these: each counts for those among which it was drawn
	Microseconds Summary `json:"net_rx_microseconds"`
}

// Polls are those of NAPI.
type Polls struct {
	Count     uint64  `json:"count"`
	Packets   uint64  `json:"packets"`
	Exhausted uint64  `json:"exhausted"` // that used up their budget
	Squeezed  uint64  `json:"squeezed"`  // softirqs that ended before their work was done
	Sizes     Summary `json:"packets_per_poll"`
}

// A Summary tells how values are distributed.
type Summary struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	// Buckets are all values: how many were at least this much, and below the next.
	Buckets []Bucket `json:"buckets"`
}

// A Bucket is how many values were at least Low, and below that of the next.
type Bucket struct {
	Low   float64 `json:"low"`
	Count uint64  `json:"count"`
}

// Names says who stands behind the meter's ids.
type Names struct {
	Workload func(Victim) string // that claims a victim; "": none
	Owner    func(Owner) PartyID
}

// Sum makes a report of what was counted in an interval.
func Sum(r *Reading, names Names) *Report {
	out := &Report{
		SchemaVersion: "1.0", Seconds: r.At.Seconds(), Rung: ByMeter, Meter: r.Own.Seconds(), MeterPart: percent(r.Watched, r.At) / 100, CPUs: []CPUShare{}, Victims: []Party{}, Owners: []Party{}, Matrix: []Cell{},
	}
	cpus := map[int]*cpuSum{}
	victims, owners, cells := ledger[PartyID]{}, ledger[PartyID]{}, ledger[[2]PartyID]{}
	var all Times
	for _, row := range r.Rows {
		victim := names.victim(row.Victim)
		owner := names.Owner(row.Owner)
		victims.add(victim, row.Times, row.Packets)
		owners.add(owner, row.Times, row.Packets)
		cells.add([2]PartyID{victim, owner}, row.Times, row.Packets)
		all = all.Plus(row.Times)
		sum := cpus[row.CPU]
		if sum == nil {
			sum = new(cpuSum)
			cpus[row.CPU] = sum
		}
		sum.add(victim.Kind, row.Times)
	}
	out.Total = shareOf(all)
	for _, c := range r.CPUs {
		out.CPUs = append(out.CPUs, c.share(cpus[c.Number]))
		out.Interrupts.Count += c.Runs[IRQ]
		out.Softirqs.RX += c.Runs[RX]
		out.Softirqs.TX += c.Runs[TX]
		out.Softirqs.Other += c.Runs[Other]
		out.Softirqs.Timed += c.Timed[RX] + c.Timed[TX] + c.Timed[Other]
		out.Polls.Count += c.Polls
		out.Polls.Packets += c.Packets
		out.Polls.Exhausted += c.Exhausted
		out.Polls.Squeezed += c.Squeezed
	}
	out.Interrupts.Way = r.Way.Seconds() * 1e6
	out.Softirqs.Microseconds = r.Durations.summary(1e-3)
	out.Polls.Sizes = r.PollSizes.summary(1)
	out.Victims, out.Owners = parties(victims), parties(owners)
	for _, id := range cells.largest(func(a, b [2]PartyID) int { return cmp.Or(compare(a[0], b[0]), compare(a[1], b[1])) }) {
		e := cells[id]
		out.Matrix = append(out.Matrix, Cell{id[0], id[1], e.times.All().Seconds(), e.packets})
	}
	return out
}

func (n Names) victim(v Victim) PartyID {
	switch {
	case v.PID == 0:
		return PartyID{Kind: PartyIdle}
	case v.ksoftirqd():
		return PartyID{Kind: PartyKsoftirqd}
	}
	return PartyID{Kind: PartyTask, Name: v.Name, PID: v.PID, Workload: n.Workload(v)}
}

// A cpuSum is what the rows of one CPU say.
type cpuSum struct {
	times                   Times
	ksoftirqd, idle, stolen time.Duration
}

func (s *cpuSum) add(victim PartyKind, t Times) {
	s.times = s.times.Plus(t)
	switch victim {
	case PartyIdle:
		s.idle += t.Stolen()
	case PartyKsoftirqd:
		s.ksoftirqd += t[RX] + t[TX] + t[Other]
	default:
		s.stolen += t.Stolen()
	}
}

func (c CPU) share(sum *cpuSum) CPUShare {
	if sum == nil {
		sum = new(cpuSum)
	}
	return CPUShare{
		CPU: c.Number, Share: shareOf(sum.times), Ksoftirqd: sum.ksoftirqd.Seconds(), Idle: sum.idle.Seconds(), Stolen: sum.stolen.Seconds(),
		Busy: c.Busy.Seconds(), Softirqs: c.Softirqs.Seconds(), Squeezed: c.Squeezed,
	}
}

func shareOf(t Times) Share {
	return Share{
		IRQ: t[IRQ].Seconds(), RX: t[RX].Seconds(), TX: t[TX].Seconds(), Other: t[Other].Seconds(), Send: t[Send].Seconds(), Receive: t[Receive].Seconds(),
		Thread: t[Thread].Seconds(), All: t.All().Seconds(),
	}
}

// A ledger sums up times by who they belong to.
type ledger[K comparable] map[K]entry

type entry struct {
	times   Times
	packets uint64
}

func (l ledger[K]) add(k K, t Times, packets uint64) {
	e := l[k]
	l[k] = entry{e.times.Plus(t), e.packets + packets}
}

// largest returns who has most time first.
func (l ledger[K]) largest(then func(a, b K) int) []K {
	all := make([]K, 0, len(l))
	for k := range l {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b K) int { return cmp.Or(cmp.Compare(l[b].times.All(), l[a].times.All()), then(a, b)) })
	return all
}

func parties(l ledger[PartyID]) []Party {
	all := []Party{}
	for _, id := range l.largest(compare) {
		all = append(all, Party{id, shareOf(l[id].times), l[id].packets})
	}
	return all
}

func compare(a, b PartyID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.PID, b.PID))
}
