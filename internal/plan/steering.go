package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A Spread is how the packets that a device receives come to CPUs, as the kernel has it.
type Spread struct {
	Driver   string
	Loopback bool
	Below    []string  // devices that it stands on, which its packets come by first
	Queues   []RxQueue // by number
	Table    string    // of RSS, as a Setting has it; "" if there is none
	Rules    []FlowRule
	// TakesRules says that the driver has a table of flow rules. Whether it takes a
	// certain one is known when it is tried.
	TakesRules bool
	Threaded   bool // NAPI polls in threads of their own, on whatever CPU
}

// An RxQueue is one queue for what a device receives.
type RxQueue struct {
	RPS       CPUs       // that its packets are handed to; none: they stay
	Flows     int        // of which it remembers the CPU (RFS)
	Interrupt *Interrupt // that tells of its packets; nil where none is known
}

// An Interrupt is one that a device's queue has.
type Interrupt struct {
	Number int
	Name   string
	May    CPUs // that it may come to
	At     CPUs // that it comes to, of these
}

// EvenTable is the table of RSS that the kernel makes: queues by turns.
const EvenTable = "even"

// RSSTable writes a table of RSS as a Setting has it: the queue of each hash, or the only
// one, or EvenTable for that which the kernel makes for so many queues.
func RSSTable(table []uint32, queues int) string {
	if len(table) == 0 {
		return ""
	}
	even, one := queues > 0, true
	for i, q := range table {
		even = even && int(q) == i%queues
		one = one && q == table[0]
	}
	switch {
	case even: // of a table with one entry or one queue that is the same
		return EvenTable
	case one:
		return strconv.Itoa(int(table[0]))
	}
	var texts []string
	for _, q := range table {
		texts = append(texts, strconv.Itoa(int(q)))
	}
	return strings.Join(texts, ",")
}

// ParseRSSTable is the reverse of RSSTable for a table of a size; it returns none for
// EvenTable, which the kernel makes.
func ParseRSSTable(text string, size int) ([]uint32, error) {
	if text == EvenTable {
		return nil, nil
	}
	var table []uint32
	for part := range strings.SplitSeq(text, ",") {
		q, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("RSS table %q: no such table", text)
		}
		table = append(table, uint32(q))
	}
	if len(table) == 1 {
		table = slices.Repeat(table, size)
	}
	if len(table) != size {
		return nil, fmt.Errorf("RSS table of %d entries, and the device has %d", len(table), size)
	}
	return table, nil
}

// NoCPU and NoQueue stand for what is not asked for.
const (
	NoCPU   = -1
	NoQueue = -1
)

// A SteerAsk is what somebody wants of a device's packets.
type SteerAsk struct {
	CPU   int          // that shall handle them, or NoCPU: only RPS is undone
	Queue int          // that they shall go to, or NoQueue: one whose interrupt comes to the CPU
	Move  bool         // the interrupt of the queue goes to the CPU
	MACs  []MAC        // packets to these alone
	Addrs []netip.Addr // likewise
}

// A Steering is by what a device's packets are brought to one CPU.
type Steering struct {
	CPU      int       `json:"cpu"`   // or NoCPU
	Queue    int       `json:"queue"` // or NoQueue, where all have a part
	Way      string    `json:"way"`   // in words
	Settings []Setting `json:"settings"`
}

// ErrNotSteered is wrapped by all that a device can not do.
var ErrNotSteered = errors.New("its packets can not be steered")

// ErrNoQueueThere says that no queue has its interrupt on the CPU, and nobody asked to move one.
var ErrNoQueueThere = errors.New("no queue has its interrupt there")

func cannot(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNotSteered}, args...)...)
}

// Steer says what has to be set so that one CPU handles a device's packets. Settings that
// are so already are left out. Where the device can not do it, it says why.
func Steer(d Spread, ask SteerAsk) (*Steering, error) {
	switch {
	case d.Loopback:
		return nil, cannot("what is sent by the loopback is handled where it is sent, and has no queue")
	case len(d.Below) > 0:
		return nil, cannot("it stands on %s, where its packets are handed to CPUs: steer that", strings.Join(d.Below, ", "))
	case len(d.Queues) == 0:
		return nil, cannot("it has no RX queues")
	case ask.Queue >= len(d.Queues):
		return nil, cannot("there is no queue %d; its last is %d", ask.Queue, len(d.Queues)-1)
	}
	s := &Steering{CPU: ask.CPU, Queue: NoQueue}
	interrupts := slices.ContainsFunc(d.Queues, func(q RxQueue) bool { return q.Interrupt != nil })
	some := len(ask.MACs)+len(ask.Addrs) > 0
	switch {
	case ask.CPU == NoCPU:
		s.Way = "RPS off: each queue's packets stay where they arrive"
		s.stay(d)
	case interrupts:
		return s, s.byQueue(d, ask)
	case some || ask.Queue != NoQueue || ask.Move:
		return nil, cannot("no interrupts of its queues are known (driver %s), so only RPS can bring its packets to a CPU, and that brings all of them", d.Driver)
	default:
		s.Way = "RPS: each queue hands its packets over to that CPU"
		for i, q := range d.Queues {
			s.set(Setting{Kind: SettingRPS, Number: i, Was: q.RPS.String(), Shall: CPUs{ask.CPU}.String()})
		}
		s.forget(d)
	}
	return s, nil
}

func (s *Steering) set(x Setting) {
	if x.Was != x.Shall {
		s.Settings = append(s.Settings, x)
	}
}

// stay turns off what hands packets on to other CPUs.
func (s *Steering) stay(d Spread) {
	for i, q := range d.Queues {
		s.set(Setting{Kind: SettingRPS, Number: i, Was: q.RPS.String()})
	}
	s.forget(d)
}

func (s *Steering) forget(d Spread) {
	for i, q := range d.Queues {
		s.set(Setting{Kind: SettingRFS, Number: i, Was: strconv.Itoa(q.Flows), Shall: "0"})
	}
}

// byQueue steers by a queue whose interrupt comes to the CPU.
func (s *Steering) byQueue(d Spread, ask SteerAsk) error {
	if err := s.choose(d, ask); err != nil {
		return err
	}
	// Packets that are handed on leave the CPU again, so that ends first; and the interrupt
	// is in its place before others' packets come.
	s.stay(d)
	irq := d.Queues[s.Queue].Interrupt
	if !irq.At.Only(ask.CPU) || ask.Move {
		s.set(Setting{Kind: SettingIRQ, Number: irq.Number, Was: irq.May.String(), Shall: CPUs{ask.CPU}.String()})
	}
	only := strconv.Itoa(s.Queue)
	some := len(ask.MACs)+len(ask.Addrs) > 0
	switch {
	case len(d.Queues) == 1:
		s.Way = "the interrupt of its only queue"
	case some && !d.TakesRules:
		return cannot("driver %s takes no flow rules; without a destination all its packets can be steered%s", d.Driver, byTable(d))
	case some:
		s.Way = "flow rules to queue " + only
		return s.rules(d, ask)
	case d.Table == "":
		return cannot("driver %s has no RSS table%s", d.Driver, byRules(d))
	default:
		s.Way = "its RSS table: all hashes to queue " + only
		s.set(Setting{Kind: SettingRSS, Was: d.Table, Shall: only})
	}
	return nil
}

func byTable(d Spread) string {
	if d.Table == "" {
		return ", and not even that, as it has no RSS table"
	}
	return " by its RSS table"
}

func byRules(d Spread) string {
	if d.TakesRules {
		return "; it takes flow rules for a destination"
	}
	return ", and takes no flow rules"
}

// choose picks the queue.
func (s *Steering) choose(d Spread, ask SteerAsk) error {
	there := func(q RxQueue) bool { return q.Interrupt != nil && q.Interrupt.At.Only(ask.CPU) }
	s.Queue = ask.Queue
	if s.Queue == NoQueue {
		s.Queue = slices.IndexFunc(d.Queues, there)
	}
	if s.Queue == NoQueue && ask.Move {
		s.Queue = slices.IndexFunc(d.Queues, func(q RxQueue) bool { return q.Interrupt != nil })
	}
	switch {
	case s.Queue == NoQueue:
		return fmt.Errorf("CPU %d: %w", ask.CPU, ErrNoQueueThere)
	case d.Queues[s.Queue].Interrupt == nil:
		return cannot("the interrupt of queue %d is not known", s.Queue)
	case !there(d.Queues[s.Queue]) && !ask.Move:
		return fmt.Errorf("the interrupt of queue %d comes to CPU %s: %w", s.Queue, d.Queues[s.Queue].Interrupt.At, ErrNoQueueThere)
	}
	return nil
}

func (s *Steering) rules(d Spread, ask SteerAsk) error {
	var want []FlowRule
	for _, m := range ask.MACs {
		want = append(want, FlowRule{MAC: m, Queue: s.Queue})
	}
	for _, a := range ask.Addrs {
		want = append(want, FlowRule{Addr: a.Unmap(), Queue: s.Queue})
	}
	for i, r := range want {
		if slices.Contains(want[:i], r) {
			continue
		}
		was := ""
		for _, other := range d.Rules {
			switch {
			case other == r:
				was = RuleThere
			case other.MAC == r.MAC && other.Addr == r.Addr:
				return cannot("it has a rule for %s already, to queue %d", r.To(), other.Queue)
			}
		}
		s.set(Setting{Kind: SettingRule, Rule: &r, Was: was, Shall: RuleThere})
	}
	return nil
}
