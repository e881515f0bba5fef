package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

// The arms of the rates lab: whose limit it is.
const (
	ofSender    = "egress"    // of the workload that sends
	ofContainer = "container" // of what arrives by the host's end of a container's link
	ofReceiver  = "ingress"   // of the workload that receives
	// ofAnswers is ofReceiver where what is answered waits in an fq.
	ofAnswers = "ingress_edt"
	// ofClasses is ofReceiver where what is acknowledged waits in a class of ours.
	ofClasses = "ingress_htb"
)

// answering are the arms whose answers wait, and the method by which they do.
var answering = map[string]policy.Method{ofAnswers: policy.MethodEDT, ofClasses: policy.MethodHTB}

// ratesPlots are the headings of what is drawn of each arm.
var ratesPlots = map[string]string{
	ofSender: "What a workload sends", ofContainer: "What comes out of a container", ofReceiver: "What a workload receives",
	ofAnswers: "What it receives where its answers wait", ofClasses: "What it receives where they wait in a class of htb",
}

var ratesInfo = Info{
	Name:    "rates",
	Summary: "what gets through a limit, from 1 Mbit/s to as fast as this host is: one flow, 32 and UDP, sent, out of a container and received",
	Arms:    []string{ofSender, ofContainer, ofReceiver, ofAnswers, ofClasses},
}

// fastest is the limit that is the fastest that this host carries, slowest what that is at least.
const (
	fastest policy.Rate = 0
	slowest policy.Rate = 1_000_000_000
)

// A traffic of the rates lab.
type rateKind struct {
	name    string // in metrics
	words   string
	streams int // of TCP; 0: datagrams
}

var rateKinds = []rateKind{{"tcp_1", "one TCP flow", 1}, {"tcp_32", "32 TCP flows", 32}, {"udp", "UDP", 0}}

// stays is how many of several streams go on when the others stop.
const stays = 8

// A ratesLab is two hosts with a wire for each rate, which takes all that TCP hands down at once.
type ratesLab struct {
	*session
	arms      []string // that this kernel has
	rates     []policy.Rate
	window    time.Duration // over which a limit is held to what gets through
	senders   [2]*traffic.Worker
	receiver  *traffic.Worker
	sends     string // the selector of who sends
	receives  string // and of who receives
	wires     []rateWire
	from, far *hosts.Host

	guard *traffic.Worker // watches the CPUs, where it may
}

type rateWire struct {
	near, far hosts.Plug
	to        traffic.Where
}

func runRates(ctx context.Context, s *session) error {
	l := &ratesLab{session: s, window: 5 * time.Second, rates: []policy.Rate{1_000_000, 10_000_000, 100_000_000, 1_000_000_000, fastest}}
	if s.chosen {
		l.rates = []policy.Rate{s.Rate}
	}
	return l.run(ctx)
}

func (l *ratesLab) run(ctx context.Context) error {
	if l.Scheduler != policy.Auto {
		return fmt.Errorf("scheduler %s: the lines of this lab have no queue, so that the limit alone is seen", l.Scheduler)
	}
	if why := l.Controller.NoLimits(ctx, policy.MethodPace); why != "" {
		return fmt.Errorf("nothing can be paced here: %s", why)
	}
	for _, arm := range ratesInfo.Arms {
		if by, waits := answering[arm]; waits {
			if why := l.Controller.NoReceiving(ctx, by); why != "" {
				l.warn("no arm %s: %s", arm, why)
				continue
			}
		}
		l.arms = append(l.arms, arm)
	}
	if err := l.build(ctx); err != nil {
		return err
	}
	var rates []string
	for i := range l.rates {
		rates = append(rates, l.rateWords(i))
		l.result.Environment.Policy += fmt.Sprintf("# %s\n", l.rateName(i))
		for _, arm := range l.arms {
			l.result.Environment.Policy += l.policy(arm, i, max(l.rates[i], 1_000_000))
		}
	}
	l.result.Environment.Rate = strings.Join(rates, ", ")
	for repetition := 1; repetition <= l.Repetitions; repetition++ {
		for i := range l.rates {
			for _, arm := range inTurn(l.arms, repetition) {
				for _, kind := range rateKinds {
					l.progress("repetition %d of %d: %s, %s, %s", repetition, l.Repetitions, l.rateName(i), arm, kind.words)
					if err := l.cell(ctx, arm, i, kind, repetition); err != nil {
						return fmt.Errorf("%s, %s, %s: %w", l.rateName(i), arm, kind.words, err)
					}
				}
			}
		}
	}
	l.conclude()
	return nil
}

// rateName is a rate in the names of metrics.
func (l *ratesLab) rateName(i int) string {
	switch r := l.rates[i]; {
	case r == fastest:
		return "fastest"
	case r >= 1_000_000_000:
		return fmt.Sprintf("%dgbit", r/1_000_000_000)
	default:
		return fmt.Sprintf("%dmbit", r/1_000_000)
	}
}

func (l *ratesLab) build(ctx context.Context) (err error) {
	if l.from, err = l.net.Host("sender"); err != nil {
		return err
	}
	if l.far, err = l.net.Host("receiver"); err != nil {
		return err
	}
	for i := range l.rates {
		end := func(on *hosts.Host, n int) hosts.Plug {
			return plug(on, fmt.Sprintf("line%d", i), fmt.Sprintf("10.99.%d.%d/24", 50+i, n), fmt.Sprintf("fd99:%d::%d/64", 50+i, n))
		}
		w := rateWire{near: end(l.from, 1), far: end(l.far, 2)}
		if err := hosts.Wire(w.near, w.far, hosts.Whole); err != nil {
			return err
		}
		w.to = l.at(w.far, 5201)
		l.wires = append(l.wires, w)
	}
	if l.sends, err = l.employ(l.from, "sends", &l.senders[0], &l.senders[1]); err != nil {
		return err
	}
	if l.receives, err = l.employ(l.far, "receives", &l.receiver); err != nil {
		return err
	}
	if err := l.postGuard(ctx); err != nil {
		return err
	}
	for _, w := range l.wires {
		if err := l.receiver.Receive(ctx, w.to.To); err != nil {
			return err
		}
	}
	return nil
}

// postGuard has the CPUs watched, where processes may go before all others.
func (l *ratesLab) postGuard(ctx context.Context) error {
	guard, err := traffic.StartWorker(l.from.Netns(), "")
	if guard, err = closing(l.session, guard, err); err != nil {
		return err
	}
	if err := guard.Watch(ctx); err != nil {
		l.warn("it can not be told when a CPU is away: %v", err)
		return nil
	}
	_, err = guard.Watched(ctx)
	l.guard = guard
	return err
}

// policy is that of an arm on the wire of a rate.
func (l *ratesLab) policy(arm string, wire int, limit policy.Rate) string {
	near, far := l.wires[wire].near.Device, l.wires[wire].far.Device
	switch arm {
	case ofSender:
		return fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none}\nworkloads:\n  sends:\n    match: [{%s}]\n    egress: {max: %s}\n", near, l.sends, limit)
	case ofContainer:
		return fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none, ingress: {max: %s}}\n", far, limit)
	}
	scheduler, method := policy.None, policy.MethodPace
	if by, waits := answering[arm]; waits {
		method = by
	}
	if arm == ofAnswers {
		scheduler = policy.FQ
	}
	return fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: %s}\nworkloads:\n  receives:\n    match: [{%s}]\n    ingress: {max: %s, method: %s}\n",
		far, scheduler, l.receives, limit, method)
}

// under runs fn while an arm's limit is in force.
func (l *ratesLab) under(ctx context.Context, arm string, wire int, limit policy.Rate, fn func() error) error {
	on := l.from
	if arm != ofSender {
		on = l.far
	}
	if err := l.Controller.Apply(ctx, on.Netns(), []byte(l.policy(arm, wire, limit))); err != nil {
		return fmt.Errorf("apply policy of lab: %w", err)
	}
	return errors.Join(fn(), l.reset(ctx))
}
