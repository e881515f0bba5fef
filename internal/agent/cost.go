package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/observe"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// A CostMeter measures what networking takes in CPU time until it is closed.
type CostMeter struct {
	agent      *Agent
	meter      *observe.Meter // nil: the kernel's own counters have to do
	why        error          // there is no meter
	accounting cost.Accounting
	last       *cost.Reading
}

// ErrNoMeter says that this kernel does not let the meter run.
var ErrNoMeter = errors.New("the meter can not run here")

// MeasureCost starts a meter on all CPUs. Calls are sampled so many times a second on each.
// Nothing of it outlives the process. Where none can run, reports have what the kernel counts by itself, and say
// what is not known; Probe and During return ErrNoMeter then. The meter runs always where what is measured
// ends before it is read, as Probe and During need it; else for a part of the time where it would cost too much.
func (a *Agent) MeasureCost(hertz int, always bool) (*CostMeter, error) {
	m := &CostMeter{agent: a}
	verdicts := ""
	err := a.reading(func(r *state.Record) error {
		if r.Applied != nil {
			verdicts = a.room().VerdictsPin()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.accounting, err = observe.FindAccounting(); err != nil {
		return nil, err
	}
	m.meter, m.why = observe.Start(observe.Options{Cgroup: a.Scope.Cgroup, Verdicts: verdicts, Always: always, Hertz: hertz})
	if m.last, err = m.read(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// read takes a reading of the meter, or of the kernel's counters.
func (m *CostMeter) read() (*cost.Reading, error) {
	if m.meter == nil {
		return observe.Counters{}.Read()
	}
	return m.meter.Read()
}

// Close ends the measurement.
func (m *CostMeter) Close() error {
	if m.meter == nil {
		return nil
	}
	return m.meter.Close()
}

// Next reports what networking took since the last report, or since the meter began: an
// interval at least, for which it waits.
func (m *CostMeter) Next(ctx context.Context, interval time.Duration) (*cost.Report, error) {
	now, err := m.await(ctx, interval)
	if err != nil {
		return nil, err
	}
	since := now.Since(m.last)
	m.last = now
	var report *cost.Report
	if err := m.named(ctx, func(names cost.Names) { report = cost.Sum(since, names) }); err != nil {
		return nil, err
	}
	report.Accounting = m.accounting
	if m.meter == nil {
		report.Rung = cost.ByCounters
		report.Warnings = append(report.Warnings, fmt.Sprintf("whose time and whose packets is not known, softirqs are of all kinds together, and sendmsg and recvmsg are not seen: %v", m.why))
		return report, nil
	}
	if err := m.meter.NotSampling(); err != nil {
		report.Warnings = append(report.Warnings, "what tasks do in sendmsg and recvmsg is not known: "+err.Error())
	}
	report.Warnings = append(report.Warnings, m.unknownWay()...)
	return report, nil
}

// unknownWay warns where interrupts cost more than is told.
func (m *CostMeter) unknownWay() []string {
	if err := m.meter.WayUnknown(); err != nil {
		return []string{"what it takes to get into an interrupt and out of it is not known, and not in irq: " + err.Error()}
	}
	return nil
}

// named says by the rules that are in force who stands behind the meter's ids.
func (m *CostMeter) named(ctx context.Context, do func(cost.Names)) error {
	return m.agent.reading(func(r *state.Record) error {
		s, err := m.agent.enter(ctx, r)
		if errors.Is(err, ErrNothingApplied) {
			s = &scene{Agent: m.agent, record: r}
			s.mounts, err = workload.FindHierarchies()
		}
		if err != nil {
			return err
		}
		defer s.close()
		do(s.partyNames())
		return nil
	})
}

// Probe has a loop compute on a CPU for a time, and says what it lost there, and to whom.
func (m *CostMeter) Probe(ctx context.Context, cpu int, during time.Duration) (*cost.Probe, error) {
	if m.meter == nil {
		return nil, fmt.Errorf("%w: %w", ErrNoMeter, m.why)
	}
	before, err := m.meter.Read()
	if err != nil {
		return nil, err
	}
	loop, err := observe.Loop(ctx, cpu, during)
	if err != nil {
		return nil, err
	}
	after, err := m.meter.Read()
	if err != nil {
		return nil, err
	}
	var p *cost.Probe
	if err := m.named(ctx, func(names cost.Names) { p = cost.Judge(cpu, uint32(os.Getpid()), loop, after.Since(before), names) }); err != nil {
		return nil, err
	}
	p.Warnings = append(p.Warnings, m.unknownWay()...)
	return p, nil
}

// During measures what networking takes while fn runs.
func (m *CostMeter) During(fn func() error) (cost.Measured, error) {
	if m.meter == nil {
		return cost.Measured{}, fmt.Errorf("%w: %w", ErrNoMeter, m.why)
	}
	before, err := m.meter.Read()
	if err != nil {
		return cost.Measured{}, err
	}
	if err := fn(); err != nil {
		return cost.Measured{}, err
	}
	after, err := m.meter.Read()
	if err != nil {
		return cost.Measured{}, err
	}
	return cost.Measure(after.Since(before)), nil
}

// await takes a reading that is an interval after the last one.
func (m *CostMeter) await(ctx context.Context, interval time.Duration) (*cost.Reading, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("read clock: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(m.last.At + interval - time.Duration(now.Nano())):
	}
	return m.read()
}

// partyNames says who stands behind the meter's ids, by the rules that are in force.
func (s *scene) partyNames() cost.Names {
	c := &claimants{scene: s, explainer: plan.NewExplainer(s.have), cgroups: map[uint64][]plan.CgroupMatch{}, known: map[claimKey]string{}}
	devices := deviceNames{here: cmp.Or(s.Scope.Netns, "/proc/thread-self/ns/net")}
	return cost.Names{
		Workload: func(v cost.Victim) string {
			if s.record.Applied == nil {
				return ""
			}
			if p, err := workload.ReadProcess(v.PID); err == nil {
				return c.of(s.subject(p))
			}
			return c.of(plan.Subject{Cgroups: c.lineage(v.Cgroup)}) // it is gone
		},
		Owner: func(o cost.Owner) cost.PartyID {
			switch o.Kind {
			case cost.Contract:
				if name := s.names[plan.ContractID(o.ID)]; name != "" {
					return cost.PartyID{Kind: cost.PartyWorkload, Name: name}
				}
			case cost.Cgroup:
				return s.cgroupParty(c, o.ID)
			case cost.Forwarded:
				return cost.PartyID{Kind: cost.PartyForwarded, Name: devices.of(o.Device())}
			case cost.Dropped:
				return cost.PartyID{Kind: cost.PartyDropped}
			}
			return cost.PartyID{Kind: cost.PartyUnattributed}
		},
	}
}

// cgroupParty is the workload that claims a cgroup, or else the cgroup.
func (s *scene) cgroupParty(c *claimants, id uint64) cost.PartyID {
	near := c.lineage(id)
	if s.record.Applied != nil {
		if name := c.of(plan.Subject{Cgroups: near}); name != "" {
			return cost.PartyID{Kind: cost.PartyWorkload, Name: name}
		}
	}
	if len(near) > 0 {
		return cost.PartyID{Kind: cost.PartyCgroup, Name: near[0].Path}
	}
	return cost.PartyID{Kind: cost.PartyCgroup, Name: fmt.Sprintf("a cgroup that is gone (%d)", id)}
}
