package observe

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// Options say what a meter looks at.
type Options struct {
	// Cgroup is the directory of the cgroup v2 whose sockets are told as owners, with those
	// of all below it.
	Cgroup string
	// Verdicts is where the table is pinned that says under which contract sockets are; "": none is.
	Verdicts string
	// Always has the programs run all the time, whatever they cost. What is over when a reading is taken
	// needs that: else it might be seen for a part of the time only that comes after it.
	Always bool
	// Hertz is how often calls are sampled on each CPU that is not idle; 0: never.
	Hertz int
}

// A Meter counts until it is closed.
type Meter struct {
	programs meterObjects
	called   bool          // there is a tracepoint of interrupts by other CPUs
	dispatch time.Duration // what each run of a program takes besides what it does
	way      time.Duration // into an interrupt and out of it
	wayErr   error         // why that is not known
	cgroup   string
	links    []link.Link // of the programs that run, which is not always
	sampler  *sampler
	gate     *gate
}

// Start begins to count. The caller closes the meter. A sampler that can not be had is
// no error: [Meter.NotSampling] says why.
func Start(o Options) (*Meter, error) {
	if o.Always {
		return startWithin(o, math.Inf(1), cycle)
	}
	return startWithin(o, budget, cycle)
}

// startWithin starts a meter with another budget, or another cycle.
func startWithin(o Options, budget float64, cycle time.Duration) (*Meter, error) {
	m := new(Meter)
	if err := m.start(o, budget, cycle); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Meter) start(o Options, budget float64, cycle time.Duration) error {
	// Before 5.11 maps count as locked memory. Where raising the limit is refused, loading says so.
	_ = rlimit.RemoveMemlock()
	if err := m.load(o.Verdicts); err != nil {
		return fmt.Errorf("load meter: %w", err)
	}
	if o.Hertz > 0 {
		m.sampler = startSampler(o.Hertz, &m.programs.meterMaps)
	}
	own, err := newOwnCost(m.all(), m.dispatch)
	if err != nil {
		return err
	}
	cpus, err := OnlineCPUs()
	if err != nil {
		return err
	}
	m.cgroup = o.Cgroup
	gate := &gate{attach: m.attach, detach: m.detach, table: m.programs.Gates, own: own, budget: budget * float64(len(cpus)), cycle: cycle}
	if err := gate.open(); err != nil {
		return err
	}
	m.gate = gate
	return nil
}

// attach attaches all programs but the sampler. What ends comes before what begins: what is not seen to
// begin has no end.
func (m *Meter) attach() error {
	p := &m.programs
	programs := []*ebpf.Program{p.SoftirqEnds, p.IrqEnds, p.NapiPolled, p.Transmitted, p.Dropped, p.SoftirqRaised, p.IrqBegins}
	if m.called {
		programs = append(programs, p.Called)
	}
	for _, program := range programs {
		if err := m.trace(program); err != nil {
			return err
		}
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: m.cgroup, Attach: ebpf.AttachCGroupInetIngress, Program: p.Delivered})
	if err != nil {
		return fmt.Errorf("attach meter to cgroup %s: %w", m.cgroup, err)
	}
	m.links = append(m.links, l)
	return m.trace(p.SoftirqBegins)
}

// detach detaches them.
func (m *Meter) detach() error {
	var errs []error
	for _, l := range m.links {
		errs = append(errs, l.Close())
	}
	m.links = nil
	return errors.Join(errs...)
}

func (m *Meter) load(verdicts string) error {
	spec, err := loadMeter()
	if err != nil {
		return err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	spec.Maps["rows"].MaxEntries = rowsFor(cpus)
	if m.called, err = interruptTracepoint(spec.Programs["called"]); err != nil {
		return err
	}
	m.way, m.wayErr = way()
	if m.dispatch, err = dispatch(); err != nil {
		return err
	}
	if err := errors.Join(spec.Variables["way"].Set(uint64(m.way)), spec.Variables["dispatch"].Set(uint64(m.dispatch))); err != nil {
		return fmt.Errorf("set what interrupts and programs take: %w", err)
	}
	var opts ebpf.CollectionOptions
	if verdicts != "" {
		known, err := ebpf.LoadPinnedMap(verdicts, nil)
		if err != nil {
			return fmt.Errorf("open what is known of sockets: %w", err)
		}
		defer known.Close()
		opts.MapReplacements = map[string]*ebpf.Map{"verdicts": known}
	}
	return spec.LoadAndAssign(&m.programs, &opts)
}

// rowsFor is how many rows the matrix may have: each takes its place on all CPUs, used or not.
func rowsFor(cpus int) uint32 {
	const memory, row = 16 << 20, 88 // bytes
	return uint32(min(max(memory/row/cpus, 2048), 16384))
}

// interruptTracepoint has a program be one of the tracepoint at the end of an interrupt by another CPU, which each architecture
// calls otherwise. Where there is none it can be loaded, and is not attached.
func interruptTracepoint(p *ebpf.ProgramSpec) (found bool, err error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return false, fmt.Errorf("read types of the kernel: %w", err)
	}
	for _, name := range []string{"call_function_single_exit", "ipi_exit"} {
		var t *btf.Typedef
		if err := kernel.TypeByName("btf_trace_"+name, &t); err == nil {
			p.AttachTo = name
			return true, nil
		}
	}
	p.AttachTo = "softirq_exit"
	return false, nil
}

// trace attaches a program to its tracepoint.
func (m *Meter) trace(p *ebpf.Program) error {
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return fmt.Errorf("attach %s: %w", p, err)
	}
	m.links = append(m.links, l)
	return nil
}

// all returns the programs that run.
func (m *Meter) all() []*ebpf.Program {
	p := &m.programs
	all := []*ebpf.Program{
		p.SoftirqBegins, p.SoftirqEnds, p.SoftirqRaised, p.IrqBegins, p.IrqEnds, p.Called, p.NapiPolled, p.Delivered, p.Transmitted, p.Dropped,
	}
	if m.sampler != nil && m.sampler.program != nil {
		all = append(all, m.sampler.program)
	}
	return all
}

// NotSampling says why calls are not sampled, nil if they are.
func (m *Meter) NotSampling() error {
	if m.sampler == nil {
		return errors.New("nobody asked for samples")
	}
	return m.sampler.err
}

// WayUnknown says why it is not known what the way into an interrupt takes, nil if it is.
func (m *Meter) WayUnknown() error { return m.wayErr }

// Close ends the counting.
func (m *Meter) Close() error {
	var errs []error
	if m.gate != nil {
		errs = append(errs, m.gate.close())
	} else {
		errs = append(errs, m.detach())
	}
	if m.sampler != nil {
		errs = append(errs, m.sampler.close())
	}
	return errors.Join(append(errs, m.programs.Close())...)
}
