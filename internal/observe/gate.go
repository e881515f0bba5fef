package observe

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

const (
	// budget is what the meter's programs may take, as a part of each CPU that is on. What they would
	// take beyond that they do not, since they run for a part of the time only.
	budget = 0.0015
	// cycle is how long it is at least from one part of the time in which they run to the next, unless somebody takes a reading:
	// it takes the kernel milliseconds to put them in place and away again.
	cycle = time.Second
	// least is the smallest part.
	least = 1.0 / 20
	// looks is how often in a cycle it is looked what the programs cost while they run all the time. Where they run for a
	// part of it they run for as long as it is from one look to the next, at least.
	looks = 5
	// briefly is how long they run at least where a reading has ended their rest.
	briefly = 50 * time.Millisecond
	// whole is the weight of what is seen all the time.
	whole = 256
)

// A gate has the meter's programs run all the time or, where that would cost too much, for a part of it. What they
// see then weighs as much as the time since they last ran, so that nothing is left out when a reading is
// taken: the gate makes room for it.
type gate struct {
	attach, detach func() error // the programs
	table          *ebpf.Map    // struct gate
	own            *ownCost
	budget         float64
	cycle          time.Duration

	calls chan func(error)
	stop  chan struct{}
	done  sync.WaitGroup

	// Of the goroutine that follows.
	began  time.Time     // the meter
	stands time.Duration // so much of the time since then is stood for
	part   float64       // of the time, in which the programs run
	rested time.Duration // that they were away before they ran this time
	window uint32

	measured time.Time // when it was last seen what they cost
}

// open has the programs run, and follows them until close.
func (g *gate) open() error {
	g.calls, g.stop, g.began, g.part = make(chan func(error)), make(chan struct{}), time.Now(), 1
	if err := g.attach(); err != nil {
		return err
	}
	err := g.measure()
	first, failed := g.weigh()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	g.done.Go(func() {
		if math.IsInf(g.budget, 1) {
			g.stay(first)
		} else {
			g.follow(first)
		}
	})
	return nil
}

// stay has the programs run all the time until it is stopped. They count nothing while a reading is taken, and nothing stands
// for that: whoever has them run all the time reads before and after what is looked at.
func (g *gate) stay(now opening) {
	look := time.NewTicker(g.cycle / looks)
	defer look.Stop()
	err := g.set(whole)
	for err == nil {
		select {
		case <-g.stop:
			return
		case <-look.C:
			g.own.ran(time.Since(now.at))
			err = g.measure()
		case call := <-g.calls:
			err = g.set(0)
			g.own.ran(time.Since(now.at))
			call(err)
			err = cmp.Or(err, g.set(whole))
		}
		now.at = time.Now()
	}
	g.refuse(nil, err)
}

// at calls fn at a moment at which all time is stood for.
func (g *gate) at(fn func() error) error {
	answer := make(chan error, 1)
	select {
	case g.calls <- func(failed error) {
		if failed == nil {
			failed = fn()
		}
		answer <- failed
	}:
		return <-answer
	case <-g.stop:
		return errClosed
	}
}

func (g *gate) close() error {
	close(g.stop)
	g.done.Wait()
	return g.detach()
}

// errClosed answers who calls a gate that is closed meanwhile.
var errClosed = errors.New("the meter is closed")

// follow begins and ends parts of the time until it is stopped. Where it fails it says so to all who call.
func (g *gate) follow(now opening) {
	var call func(error)
	var stopped bool
	for {
		call, stopped = g.watch(call)
		err := g.end(now)
		switch {
		case stopped && call != nil:
			call(errClosed)
		case call != nil:
			call(err)
		}
		call = nil
		if err == nil && !stopped {
			if call, stopped, err = g.rest(); err == nil && !stopped {
				now, err = g.weigh()
			}
		}
		if stopped || err != nil {
			g.refuse(call, err)
			return
		}
	}
}

// refuse answers all who call from now on.
func (g *gate) refuse(call func(error), err error) {
	err = cmp.Or(err, errClosed)
	for ; ; call = nil {
		if call != nil {
			call(err)
		}
		select {
		case <-g.stop:
			return
		case call = <-g.calls:
			call(err)
		}
	}
}

// watch waits while the programs run. It ends with a call where they do so all the time, and else waits on with
// one: what they see in the whole part weighs as much as the time before.
func (g *gate) watch(call func(error)) (_ func(error), stopped bool) {
	over := time.After(g.on())
	for {
		calls := g.calls
		if call != nil {
			calls = nil
		}
		select {
		case <-g.stop:
			return call, true
		case <-over:
			return call, false
		case call = <-calls:
			if g.part == 1 {
				return call, false
			}
		}
	}
}

// usually is how long the programs run at a time where nobody takes a reading.
func (g *gate) usually() time.Duration {
	if look := g.cycle / looks; g.part == 1 || g.part*looks < 1 {
		return look
	}
	return time.Duration(g.part * float64(g.cycle))
}

// on is how long they run this time. Where they do so all the time it is still looked several times a cycle what they
// cost: a load may begin at any moment.
func (g *gate) on() time.Duration {
	if g.rested == 0 {
		return g.usually()
	}
	return min(g.usually(), max(briefly, time.Duration(g.part/(1-g.part)*float64(g.rested))))
}

// rest looks what the programs cost, and has them be away for the part of the time that they are to. A call
// ends that.
func (g *gate) rest() (call func(error), stopped bool, err error) {
	g.rested = 0
	if err := g.measure(); err != nil || g.part == 1 {
		return nil, false, err
	}
	if err := g.paid(g.detach); err != nil {
		return nil, false, err
	}
	g.window++
	began := time.Now()
	select {
	case <-g.stop:
		return nil, true, nil
	case call = <-g.calls:
	case <-time.After(time.Duration((1 - g.part) / g.part * float64(g.usually()))):
	}
	g.rested = time.Since(began)
	return call, false, g.paid(g.attach)
}

// paid does something that is done for the programs.
func (g *gate) paid(fn func() error) error {
	began := time.Now()
	err := fn()
	g.own.add(time.Since(began))
	return err
}

// measure looks what the programs cost while they count nothing, unless it has just been seen, and sets the part of the time
// in which they may run.
func (g *gate) measure() error {
	if time.Since(g.measured) < g.cycle/looks {
		return nil
	}
	rate, err := g.own.look()
	if err != nil {
		return err
	}
	g.measured = time.Now()
	g.part = min(1, max(least, g.budget/max(rate, 1e-9)))
	return nil
}

// opening is when a part of the time began, and what it weighs.
type opening struct {
	at     time.Time
	weight uint32
}

// weigh begins a part of the time: it stands for itself, and for what is not stood for yet. Where the last one was longer than it was
// to be, because others had the CPU when it should have ended, it stood for time of this one.
func (g *gate) weigh() (opening, error) {
	now := time.Now()
	behind := now.Sub(g.began) - g.stands
	o := opening{now, uint32(whole * float64(max(0, behind+g.on())) / float64(g.on()))}
	return o, g.set(o.weight)
}

// end ends a part of the time.
func (g *gate) end(o opening) error {
	err := g.set(0)
	ran := time.Since(o.at)
	g.stands += time.Duration(float64(ran) * float64(o.weight) / whole)
	g.own.ran(ran)
	return err
}

func (g *gate) set(weight uint32) error {
	if err := g.table.Put(uint32(0), meterGate{Weight: weight, Window: g.window}); err != nil {
		return fmt.Errorf("weigh what the meter sees: %w", err)
	}
	return nil
}
