package observe

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// A sampler looks some times a second at what runs on each CPU.
type sampler struct {
	program *ebpf.Program
	stacks  *ebpf.Map
	events  []int // perf events, one a CPU
	err     error // why it does not run
}

// atWork tells by the name of a function what a task is at that is in it. Functions that call
// others and return their result are often left before those are, so a protocol's own
// are named beside those of its family.
var atWork = []struct {
	work meterWork
	name *regexp.Regexp
}{
	{meterWorkWORK_RX, regexp.MustCompile(`^net_rx_action$`)},
	{meterWorkWORK_TX, regexp.MustCompile(`^net_tx_action$`)},
	{meterWorkWORK_THREAD, regexp.MustCompile(`^napi_threaded_poll(_loop)?$`)},
	{meterWorkWORK_SEND, regexp.MustCompile(`^(inet6?|tcp|udp|udpv6|raw|rawv6|mptcp|packet)_(sendmsg|sendpage)(_locked)?$`)},
	{meterWorkWORK_RECV, regexp.MustCompile(`^(inet6?|tcp|udp|udpv6|raw|rawv6|mptcp|packet)_(recvmsg|splice_read|read_sock)(_locked)?$`)},
}

func workIn(function string) (meterWork, bool) {
	for _, w := range atWork {
		if w.name.MatchString(function) {
			return w.work, true
		}
	}
	return 0, false
}

// startSampler samples into the tables of a meter. One that can not says why in err.
func startSampler(hertz int, tables *meterMaps) *sampler {
	s := new(sampler)
	if s.err = s.start(hertz, tables); s.err != nil {
		s.err = errors.Join(s.err, s.stop())
	}
	return s
}

func (s *sampler) start(hertz int, tables *meterMaps) error {
	ranges, err := findRanges()
	if err != nil {
		return err
	}
	spec, err := loadSamples()
	if err != nil {
		return fmt.Errorf("read samples: %w", err)
	}
	period := uint64(time.Second) / uint64(hertz)
	var objects samplesObjects
	spec.Maps["rows"].MaxEntries = tables.Rows.MaxEntries()
	err = errors.Join(spec.Variables["ranges"].Set(ranges), spec.Variables["period"].Set(period))
	if err != nil {
		return fmt.Errorf("set samples: %w", err)
	}
	err = spec.LoadAndAssign(&objects, &ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		"rows": tables.Rows, "totals": tables.Totals, "sittings": tables.Sittings, "gates": tables.Gates,
	}})
	if err != nil {
		return fmt.Errorf("load samples: %w", err)
	}
	s.program, s.stacks = objects.Sampled, objects.Stacks
	for _, shared := range []*ebpf.Map{objects.Rows, objects.Totals, objects.Sittings, objects.Gates} {
		shared.Close()
	}
	cpus, err := OnlineCPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		if err := s.sample(cpu, period); err != nil {
			return fmt.Errorf("sample CPU %d: %w", cpu, err)
		}
	}
	return nil
}

// sample begins on one CPU. The clock that does not need the CPU's own counters is there in virtual
// machines, too.
func (s *sampler) sample(cpu int, period uint64) error {
	event, err := unix.PerfEventOpen(&unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: unix.PERF_ATTR_SIZE_VER1, Sample: period,
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeIdle,
	}, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open perf event: %w", err)
	}
	s.events = append(s.events, event)
	if err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_SET_BPF, s.program.FD()); err != nil {
		return fmt.Errorf("attach to perf event: %w", err)
	}
	if err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return fmt.Errorf("enable perf event: %w", err)
	}
	return nil
}

// findRanges says where in the kernel a task is at what: by address, the first is before all others,
// those that are not used are behind.
func findRanges() (ranges [64]samplesRange, err error) {
	functions, err := findFunctions(func(name string) bool { _, is := workIn(name); return is })
	if err != nil {
		return ranges, err
	}
	if len(functions) >= len(ranges) {
		return ranges, fmt.Errorf("find functions of the kernel: %d send or receive, more than the %d that there is room for", len(functions), len(ranges)-1)
	}
	for i := range ranges {
		ranges[i].From = ^uint64(0)
	}
	ranges[0].From = 0
	for i, f := range functions {
		work, _ := workIn(f.name)
		ranges[i+1].From, ranges[i+1].To, ranges[i+1].Work = f.from, f.to, uint64(work)
	}
	return ranges, nil
}

func (s *sampler) stop() error {
	var errs []error
	for _, event := range s.events {
		errs = append(errs, unix.Close(event))
	}
	s.events = nil
	if s.program != nil {
		errs = append(errs, s.program.Close(), s.stacks.Close())
		s.program = nil
	}
	return errors.Join(errs...)
}

func (s *sampler) close() error { return s.stop() }

// OnlineCPUs returns the numbers of the CPUs that are on.
func OnlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("find CPUs: %w", err)
	}
	cpus, err := plan.ParseCPUs(string(text))
	if err != nil {
		return nil, fmt.Errorf("find CPUs: %w", err)
	}
	return cpus, nil
}
