package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/lab/inside"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// ErrUnknown says that no lab has the name that was asked for.
var ErrUnknown = errors.New("unknown lab")

// Info describes a lab for a list.
type Info struct {
	Name    string
	Summary string // one line
	Arms    []string
}

// Options is what a run may choose. The zero value of a field is its default.
type Options struct {
	Controller  Controller  // needed
	Rate        policy.Rate // of the bottleneck, 100 Mbit/s; of the lab rates the only limit, else several
	Repetitions int         // of each arm; each lab has its own default
	Scheduler   policy.Scheduler
	Version     string           // of Weir, for the result
	Command     string           // that repeats the run, for the result
	Progress    func(string)     // what is being done, a phrase at a time
	Now         func() time.Time // the clock of the result's Started
}

// MinRate and MaxRate bound the bottleneck: below, a copy is a handful of
// packets, and above, this is a test of the CPU.
const (
	MinRate policy.Rate = 5_000_000
	MaxRate policy.Rate = 10_000_000_000
)

// congestion chooses the control of all senders of a lab. It is not the host's,
// for that decides how flows share a FIFO: two BBR flows do not halve it. CUBIC
// is what nearly every host sends with; reno, which no kernel is without, shares
// alike.
func congestion() string {
	available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err == nil && slices.Contains(strings.Fields(string(available)), "cubic") {
		return "cubic"
	}
	return "reno"
}

// settle is how long streams run before anything is measured: many times the
// few hundred milliseconds in which two flows find their shares.
const settle = 500 * time.Millisecond

// sampling is the distance of the samples in a plot.
const sampling = 50 * time.Millisecond

type experiment struct {
	info        Info
	repetitions int
	run         func(context.Context, *session) error
	possible    func() error // why it can not be on this host; nil: it always can
}

func experiments() []experiment {
	return []experiment{
		{info: costInfo, repetitions: 6, run: runCost},
		{info: limitersInfo, repetitions: 6, run: runLimiters},
		{info: priorityInfo, repetitions: 6, run: runPriority},
		{info: ratesInfo, repetitions: 2, run: runRates},
		{info: sharingInfo, repetitions: 6, run: runSharing},
		{info: sshInfo, repetitions: 6, run: runSSH},
		{info: memoryInfo, repetitions: 6, run: runMemory},
		{info: vrfInfo, repetitions: 6, run: runVRF, possible: needsVRF},
	}
}

// List describes all labs, in the order of their names.
func List() []Info {
	var all []Info
	for _, e := range experiments() {
		all = append(all, e.info)
	}
	return all
}

// Possible says why a lab can not be run on this host, whatever its options; nil where it can, or
// where that shows only later. It touches nothing.
func Possible(name string) error {
	_, err := find(name)
	return err
}

// find finds a lab that is possible here.
func find(name string) (experiment, error) {
	all := experiments()
	i := slices.IndexFunc(all, func(e experiment) bool { return e.info.Name == name })
	if i < 0 {
		return experiment{}, fmt.Errorf("run lab %q: %w", name, ErrUnknown)
	}
	if all[i].possible != nil {
		if err := all[i].possible(); err != nil {
			return experiment{}, fmt.Errorf("run lab %s: %w", name, err)
		}
	}
	return all[i], nil
}

// Run makes one experiment and returns what came out. It takes from one minute to
// half an hour with its defaults. When ctx ends it stops, cleans up and returns the
// context's error; ErrUnknown says that there is no such lab.
func Run(ctx context.Context, name string, o Options) (report.Result, error) {
	e, err := find(name)
	if err != nil {
		return report.Result{}, err
	}
	s, err := newSession(e, o)
	if err != nil {
		return report.Result{}, fmt.Errorf("run lab %s: %w", name, err)
	}
	begin := time.Now()
	err = s.lookAround(ctx)
	if err == nil {
		err = e.run(ctx, s)
	}
	err = errors.Join(err, s.close())
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return report.Result{}, fmt.Errorf("run lab %s: %w", name, err)
	}
	s.result.Seconds = time.Since(begin).Round(10 * time.Millisecond).Seconds()
	return s.result, nil
}

func newSession(e experiment, o Options) (*session, error) {
	if o.Controller == nil {
		return nil, errors.New("no controller was given")
	}
	chosen := o.Rate != 0
	if !chosen {
		o.Rate = 100_000_000
	}
	if o.Rate < MinRate || o.Rate > MaxRate {
		return nil, fmt.Errorf("rate %s is not between %s and %s", o.Rate, MinRate, MaxRate)
	}
	if o.Repetitions == 0 {
		o.Repetitions = e.repetitions
	}
	if o.Repetitions < 1 || o.Repetitions > 100 {
		return nil, fmt.Errorf("%d repetitions are not between 1 and 100", o.Repetitions)
	}
	if o.Scheduler == "" {
		o.Scheduler = policy.Auto
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	kernel, err := kernelRelease()
	if err != nil {
		return nil, err
	}
	s := &session{Options: o, chosen: chosen, samples: map[string]map[string]*samples{}}
	model, mitigation := processor(os.DirFS("/"))
	s.result = report.Result{
		SchemaVersion: report.SchemaVersion,
		Lab:           e.info.Name,
		Version:       o.Version,
		Kernel:        kernel,
		Started:       o.Now().UTC().Format(time.RFC3339),
		Ratios:        map[string]report.Ratio{},
		Environment: &report.Environment{
			CPUs:        runtime.NumCPU(),
			Processor:   model,
			Mitigation:  mitigation,
			Kernel:      kernel,
			Rate:        rateWords(o.Rate),
			Repetitions: o.Repetitions,
			Congestion:  congestion(),
			Command:     o.Command,
		},
	}
	if o.Repetitions < 6 {
		s.warn("with --repetitions %d a range covers the true median with a confidence of %.0f %% only; --repetitions 6 or more gives over 95 %%",
			o.Repetitions, 100*report.Confidence(o.Repetitions))
	}
	return s, s.stayAwake()
}

// rateWords is a rate as people write it.
func rateWords(r policy.Rate) string {
	if r >= 1e9 {
		return fmt.Sprintf("%g Gbit/s", float64(r)/1e9)
	}
	return fmt.Sprintf("%g Mbit/s", float64(r)/1e6)
}

func kernelRelease() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("read kernel release: %w", err)
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}

// TrafficMain is the main function of the processes in which labs run local
// workloads. A program that runs labs calls it before anything else with its
// arguments (without its own name); where ours is true, it has to exit with the
// code.
func TrafficMain(args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, ours bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case traffic.WorkerArgument:
		return traffic.WorkerMain(stdin, stdout, stderr), true
	case inside.Argument:
		return inside.Main(args[1:], stdin, stdout, stderr), true
	}
	return 0, false
}
