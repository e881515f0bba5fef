package cost

import (
	"strings"
	"time"
)

// A Reading is all that the meter has counted since it began.
type Reading struct {
	At        time.Duration // since some moment
	CPUs      []CPU         // that are online, by number
	Rows      []Row
	Durations Histogram     // of NET_RX softirqs, ns
	PollSizes Histogram     // packets a poll
	Own       time.Duration // what the meter's programs took, on all CPUs
	Watched   time.Duration // that these programs ran; all else is what they saw then, weighed
	Way       time.Duration // what the way into a hard interrupt and out of it takes: in the times of IRQ; 0: unknown
	Sampling  bool          // whether calls are sampled: without that, times of Send, Receive and Thread are unknown
}

// CPU is what happened on one.
type CPU struct {
	Number    int
	Runs      [Other + 1]uint64        // interrupts and softirqs by work
	Timed     [Other + 1]uint64        // of these
	Stood     [Other + 1]uint64        // for which those stand, by lot
	Time      [Other + 1]time.Duration // what they took, which the rows divide
	Polls     uint64                   // of NAPI
	Packets   uint64                   // in polls
	Exhausted uint64                   // polls that used up their budget
	Lost      time.Duration            // for which there was no row
	Samples   uint64                   // of tasks that were not idle
	Sampled   [Other + 1]uint64        // of these in softirqs: a second opinion on Time, with what the meter takes in them
	Squeezed  uint64                   // NET_RX softirqs that ended before their work was done, as the kernel counts
	Busy      time.Duration            // not idle, by the kernel's account
	Softirqs  time.Duration            // of all kinds, likewise; most kernels find them by their tick only
}

// A Row is the time of a victim that went to an owner, on one CPU. For sends and receives both are
// the same.
type Row struct {
	CPU     int
	Victim  Victim
	Owner   Owner
	Times   Times
	Packets uint64 // on the wire
	Bytes   uint64 // of these that have an owner
}

// A Victim is who ran on the CPU meanwhile.
type Victim struct {
	PID    uint32 // 0: nobody, the CPU was idle
	Cgroup uint64 // v2, by its id
	Name   string // as the kernel has it, 15 bytes at most
}

// OwnerKind is what is known of whose packets are.
type OwnerKind uint8

// The kinds of owners, in the order of the meter's (bpf/meter.h).
const (
	Nobody    OwnerKind = iota // not attributed
	Cgroup                     // ID is that of a cgroup v2
	Contract                   // ID is the number of a workload's contract
	Forwarded                  // ID is of the device that they left by: [Owner.Device]
	Dropped
)

// An Owner is whose packets they were.
type Owner struct {
	Kind OwnerKind
	ID   uint64
}

// Device returns the namespace, by its inode, and the index in it of the device that
// packets were forwarded to.
func (o Owner) Device() (netns uint32, index int) { return uint32(o.ID >> 32), int(uint32(o.ID)) }

// Since returns what was counted since an earlier reading of the same meter.
func (r *Reading) Since(before *Reading) *Reading {
	d := &Reading{
		At: r.At - before.At, Durations: r.Durations.Since(before.Durations), PollSizes: r.PollSizes.Since(before.PollSizes),
		Own: r.Own - before.Own, Watched: r.Watched - before.Watched, Way: r.Way, Sampling: r.Sampling,
	}
	was := map[int]CPU{}
	for _, c := range before.CPUs {
		was[c.Number] = c
	}
	drawn := map[int]luck{}
	for _, c := range r.CPUs {
		c = c.minus(was[c.Number])
		drawn[c.Number] = c.luck()
		c.Time = drawn[c.Number].of(c.Time)
		d.CPUs = append(d.CPUs, c)
	}
	type key struct {
		cpu    int
		victim Victim
		owner  Owner
	}
	rows := make(map[key]Row, len(before.Rows))
	for _, row := range before.Rows {
		rows[key{row.CPU, row.Victim, row.Owner}] = row
	}
	for _, row := range r.Rows {
		old := rows[key{row.CPU, row.Victim, row.Owner}]
		if old.Times.All() > row.Times.All() { // the row was forgotten, and made anew
			old = Row{}
		}
		row.Times, row.Packets, row.Bytes = row.Times.minus(old.Times), row.Packets-old.Packets, row.Bytes-old.Bytes
		if l, here := drawn[row.CPU]; here {
			row = l.ofRow(row)
		}
		if row.Times != (Times{}) || row.Packets != 0 {
			d.Rows = append(d.Rows, row)
		}
	}
	return d
}

func (c CPU) minus(o CPU) CPU {
	for w := range c.Runs {
		c.Runs[w] -= o.Runs[w]
		c.Timed[w] -= o.Timed[w]
		c.Stood[w] -= o.Stood[w]
		c.Time[w] -= o.Time[w]
		c.Sampled[w] -= o.Sampled[w]
	}
	c.Polls -= o.Polls
	c.Packets -= o.Packets
	c.Exhausted -= o.Exhausted
	c.Lost -= o.Lost
	c.Samples -= o.Samples
	c.Squeezed -= o.Squeezed
	c.Busy -= o.Busy
	c.Softirqs -= o.Softirqs
	return c
}

// ksoftirqd is whether this is one of the kernel's threads that handle softirqs when there are too
// many of them: it works for others.
func (v Victim) ksoftirqd() bool { return strings.HasPrefix(v.Name, "ksoftirqd/") }
