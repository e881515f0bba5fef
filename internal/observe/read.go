package observe

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/cost"
)

// Read returns what has been counted since the meter began.
func (m *Meter) Read() (r *cost.Reading, err error) {
	err = m.gate.at(func() (err error) {
		r, err = m.read()
		return err
	})
	return r, err
}

func (m *Meter) read() (*cost.Reading, error) {
	cpus, err := OnlineCPUs()
	if err != nil {
		return nil, err
	}
	times, timesErr := cpuTimes()
	squeezed, squeezedErr := squeezes()
	r := &cost.Reading{Way: m.way, Sampling: m.NotSampling() == nil}
	r.Own, r.Watched = m.gate.own.read()
	now, nowErr := monotonic()
	r.At = now
	var totals []meterTotals
	err = m.programs.Totals.Lookup(uint32(0), &totals)
	if err := errors.Join(timesErr, squeezedErr, nowErr, err); err != nil {
		return nil, fmt.Errorf("read meter: %w", err)
	}
	for _, cpu := range cpus {
		if cpu >= len(totals) {
			return nil, fmt.Errorf("read meter: CPU %d is not among the %d that the kernel said are possible", cpu, len(totals))
		}
		c := cpuOf(cpu, totals[cpu])
		c.Busy, c.Softirqs, c.Squeezed = times[cpu].busy, times[cpu].softirqs, squeezed[cpu]
		r.CPUs = append(r.CPUs, c)
	}
	if r.Rows, err = m.rows(); err != nil {
		return nil, err
	}
	durations, err := sum(m.programs.Durations)
	if err != nil {
		return nil, err
	}
	sizes, err := sum(m.programs.PollSizes)
	if err != nil {
		return nil, err
	}
	r.Durations, r.PollSizes = cost.Durations(durations), cost.Sizes(sizes)
	return r, nil
}

func cpuOf(number int, t meterTotals) cost.CPU {
	c := cost.CPU{
		Number: number, Polls: t.Polls / whole, Packets: t.Packets / whole, Exhausted: t.Exhausted / whole,
		Lost: time.Duration(t.Lost), Samples: t.Samples, Sampled: t.Sampled,
	}
	for w, ns := range t.Ns {
		c.Time[w] = time.Duration(ns)
		c.Runs[w], c.Timed[w], c.Stood[w] = t.Runs[w]/whole, t.Timed[w]/whole, t.Stood[w]/whole
	}
	return c
}

// rows reads the matrix, CPU by CPU, and makes room in it where it fills up.
func (m *Meter) rows() ([]cost.Row, error) {
	var all []cost.Row
	var keys []meterRowKey
	var key meterRowKey
	var perCPU []meterRow
	it := m.programs.Rows.Iterate()
	for it.Next(&key, &perCPU) {
		keys = append(keys, key)
		for cpu, r := range perCPU {
			if r.Ns == [cost.Works]uint64{} && r.Packets == 0 {
				continue
			}
			row := cost.Row{
				CPU:     cpu,
				Victim:  cost.Victim{PID: key.Tgid, Cgroup: key.Cgroup, Name: text(r.Comm[:])},
				Owner:   cost.Owner{Kind: cost.OwnerKind(key.Owner.Owned), ID: key.Owner.Id},
				Packets: r.Packets / whole, Bytes: r.Bytes / whole,
			}
			for w, ns := range r.Ns {
				row.Times[w] = time.Duration(ns)
			}
			all = append(all, row)
		}
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read rows of the meter: %w", err)
	}
	if len(keys) > int(m.programs.Rows.MaxEntries()/2) {
		if err := m.forget(keys); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// forget deletes the rows of processes that have ended.
func (m *Meter) forget(keys []meterRowKey) error {
	for _, key := range keys {
		if key.Tgid == 0 || !errors.Is(unix.Kill(int(key.Tgid), 0), unix.ESRCH) {
			continue
		}
		if err := m.programs.Rows.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("delete row of process %d: %w", key.Tgid, err)
		}
	}
	return nil
}

// text is a string that ends at its first zero.
func text(s []int8) string {
	b := make([]byte, len(s))
	for i, c := range s {
		b[i] = byte(c)
	}
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

func monotonic() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// sum returns the counters of an array, those of all CPUs together.
func sum(m *ebpf.Map) ([]uint64, error) {
	sums := make([]uint64, m.MaxEntries())
	for i := range sums {
		var perCPU []uint64
		if err := m.Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("read %s of the meter: %w", m, err)
		}
		for _, n := range perCPU {
			sums[i] += n
		}
		sums[i] /= whole
	}
	return sums, nil
}
