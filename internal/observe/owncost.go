package observe

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// The kernel's own account of programs costs two looks at the clock at each run, so it is on for
// a part of the time only, and stands for all of it.
const (
	accountEvery = time.Second
	accountFor   = 20 * time.Millisecond
)

// ownCost finds out what programs cost.
type ownCost struct {
	programs []*ebpf.Program
	bias     time.Duration // what the account itself adds to each run
	stop     chan struct{}
	done     sync.WaitGroup

	mu   sync.Mutex
	cost time.Duration // on all CPUs, since it began
	err  error
}

func watchOwnCost(programs []*ebpf.Program) (*ownCost, error) {
	bias, err := accountBias()
	if err != nil {
		return nil, err
	}
	o := &ownCost{programs: programs, bias: bias, stop: make(chan struct{})}
	took, during, err := o.look()
	if err != nil {
		return nil, err
	}
	o.add(took, during, during)
	o.done.Go(o.follow)
	return o, nil
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

// follow accounts in intervals until it is stopped.
func (o *ownCost) follow() {
	last := time.Now()
	for {
		select {
		case <-o.stop:
			return
		case <-time.After(accountEvery - accountFor):
		}
		took, during, err := o.look()
		now := time.Now()
		if err != nil {
			o.mu.Lock()
			o.err = err
			o.mu.Unlock()
			return
		}
		o.add(took, during, now.Sub(last))
		last = now
	}
}

// add counts what programs took during a part of an interval.
func (o *ownCost) add(took, during, interval time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cost += time.Duration(float64(took) * float64(interval) / float64(during))
}

// look returns what the programs take while it waits for accountFor.
func (o *ownCost) look() (took, during time.Duration, err error) {
	var account io.Closer
	if account, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
		return 0, 0, fmt.Errorf("account for the meter's programs: %w", err)
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	began := time.Now()
	before, err := o.runtime()
	if err != nil {
		return 0, 0, err
	}
	select {
	case <-o.stop:
	case <-time.After(accountFor):
	}
	after, err := o.runtime()
	return after - before, time.Since(began), err
}

func (o *ownCost) runtime() (sum time.Duration, err error) {
	for _, p := range o.programs {
		s, err := p.Stats()
		if err != nil {
			return 0, fmt.Errorf("account for %s: %w", p, err)
		}
		sum += max(0, s.Runtime-time.Duration(s.RunCount)*o.bias)
	}
	return sum, nil
}

// read returns the cost since it began.
func (o *ownCost) read() (time.Duration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cost, o.err
}

func (o *ownCost) close() error {
	close(o.stop)
	o.done.Wait()
	return nil
}
