package observe

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// accountFor is how long the kernel's own account of programs is on at a time. It costs two looks at the clock at each
// run, so what it says in that time stands for the rest.
const accountFor = 5 * time.Millisecond

// ownCost finds out what programs cost.
type ownCost struct {
	programs []*ebpf.Program
	bias     time.Duration // what the account itself adds to each run
	dispatch time.Duration // what each run takes that the account does not see

	mu   sync.Mutex
	rate float64       // of one CPU, as it was seen last
	cost time.Duration // on all CPUs, since it began
	on   time.Duration // that they ran
}

func newOwnCost(programs []*ebpf.Program, dispatch time.Duration) (*ownCost, error) {
	bias, err := accountBias()
	return &ownCost{programs: programs, bias: bias, dispatch: dispatch}, err
}

// accountBias is what the kernel says that a run of a program takes which does nothing: what its
// account takes.
func accountBias() (_ time.Duration, err error) {
	nothing, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SocketFilter, License: "Apache-2.0", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return 0, fmt.Errorf("account for nothing: %w", err)
	}
	defer nothing.Close()
	account, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return 0, fmt.Errorf("account for the meter's programs: %w", err)
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	const runs = 10000
	if _, _, err := nothing.Benchmark(make([]byte, 64), runs, nil); err != nil {
		return 0, fmt.Errorf("account for nothing: %w", err)
	}
	s, err := nothing.Stats()
	if err != nil || s.RunCount == 0 {
		return 0, errors.Join(errors.New("account for nothing: it did not run"), err)
	}
	return s.Runtime / time.Duration(s.RunCount), nil
}

// look returns what the programs take while it waits for accountFor, as a part of one CPU.
func (o *ownCost) look() (rate float64, err error) {
	account, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return 0, fmt.Errorf("account for the meter's programs: %w", err)
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	began := time.Now()
	before, err := o.runtime()
	if err != nil {
		return 0, err
	}
	time.Sleep(accountFor)
	after, err := o.runtime()
	if err != nil {
		return 0, err
	}
	rate = float64(after-before) / float64(time.Since(began))
	o.mu.Lock()
	o.rate = rate
	o.mu.Unlock()
	return rate, nil
}

// ran counts what programs take that run for a time.
func (o *ownCost) ran(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on += d
	o.cost += time.Duration(o.rate * float64(d))
}

// add counts what else is done for them.
func (o *ownCost) add(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cost += d
}

func (o *ownCost) runtime() (sum time.Duration, err error) {
	for _, p := range o.programs {
		s, err := p.Stats()
		if err != nil {
			return 0, fmt.Errorf("account for %s: %w", p, err)
		}
		runs := time.Duration(s.RunCount)
		sum += max(0, s.Runtime-runs*o.bias) + runs*o.dispatch
	}
	return sum, nil
}

// read returns the cost since it began, and how long the programs ran.
func (o *ownCost) read() (cost, on time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cost, o.on
}
