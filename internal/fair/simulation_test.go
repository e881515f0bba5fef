package fair

import (
	"container/heap"
	"math/rand"
	"time"
)

const (
	mss           = 1448      // payload of a segment, bytes
	initialWindow = 10        // segments; they are not paced
	maxGSO        = 44        // segments in one packet of 64 KiB
	maxWindow     = 1 << 17   // segments
	sendBuffer    = 64 * 1024 // bytes that a modest application has waiting
	slotLength    = 10 * time.Millisecond
	moment        = second >> 10          // after which a tab is charged of what is sent, ns
	jiffyRoom     = second >> 12          // of a share, on a tab that is charged at the end of a jiffy, ns
	timerSlack    = 20 * time.Microsecond // by which timers and softirqs are late
	soonPaced     = 4_000_000             // the longest round trip of who need not be paced before its limit binds it, ns
	seldom        = second >> 12          // of its share, before a flow is looked at again in a jiffy, ns
	seldomFree    = 16 << 10              // bytes, where it runs free
	longestJiffy  = 10_000_000            // of any kernel, ns
	unpaced       = 100 << 30             // what TCP sends by itself, bytes/s
)

// A sender is one TCP connection as Linux paces and segments it. Nothing is lost
// and nothing waits on its path.
type sender struct {
	Flow
	in     *Budget // that it votes in
	demand float64 // bytes/s that the application writes; 0: greedy
	every  uint64  // ns, for each of which it writes at once; 0: it writes all the time
	phase  uint64  // by which it is ahead of others, ns
	rtt    uint64  // ns
	pace   uint64  // bytes/s of payload
	rests  uint64  // until when that is left alone, ns, while fewer of its bytes are acknowledged than
	asked  uint64
	cwnd   uint64 // segments
	flight uint64 // segments
	widest uint64 // largest flight so far, segments
	sent   uint64 // segments
	total  uint64 // bytes on the wire
	next   uint64 // earliest time of the next packet, ns
	on     bool
	paced  bool // by us: it never is any more as if it had not been
	armed  bool // a timer will wake it
	cpu    int  // where it runs

	small   bool    // it sends one segment at a time, and keeps a tab, as bpf/tab.h does
	tab     uint64  // bytes that it is not charged for yet
	tabEnds uint64  // ns
	onTab   uint64  // packets
	charged uint64  // packets that were charged, with what was on the tab
	written float64 // bytes that wait in the send buffer
	refill  uint64  // when they were counted, ns
	drained uint64  // segments sent until there was none in it
}

// An event wakes a sender, brings it an acknowledgement, or does something else.
type event struct {
	at    uint64 // ns
	order int    // of events at one time
	who   *sender
	acked uint64 // segments; 0: time to send
	do    func()
}

type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*event)) }
func (e *events) Pop() any     { o := *e; x := o[len(o)-1]; *e = o[:len(o)-1]; return x }

// A simulation is a host whose senders share a budget.
type simulation struct {
	budget  *Budget
	inner   *Budget           // a second level below budget
	below   map[*sender]*Flow // the senders that it holds, too
	now     uint64            // ns
	jiffy   uint64            // at whose end a tab is charged, ns; 0: a moment later
	queue   events
	order   int
	random  *rand.Rand
	wire    []uint64                         // bytes in each slotLength
	stalled func(now uint64) uint64          // for how long the CPU runs no timer, ns
	away    func(cpu int, now uint64) uint64 // for how long a CPU does nothing at all, ns; nil: none ever is
	huge    bool                             // packets of 64 KiB at any pace: tcp_tso_rtt_log, near peer
	pieces  bool                             // no more on its way than 4 ms of a pace, or two segments, as bpf/pieces.h has it
}

func newSimulation(limit uint64) *simulation {
	return &simulation{budget: NewBudget(limit, 0), random: rand.New(rand.NewSource(1))}
}

func (s *simulation) at(when uint64, e event) {
	s.order++
	e.at, e.order = when, s.order
	heap.Push(&s.queue, &e)
}

// run lets everything happen that is due until a time.
func (s *simulation) run(until time.Duration) {
	for len(s.queue) > 0 && s.queue[0].at <= uint64(until) {
		e := heap.Pop(&s.queue).(*event)
		s.now = e.at
		if s.away != nil && e.who != nil {
			if left := s.away(e.who.cpu, s.now); left > 0 {
				s.at(s.now+left, *e)
				continue
			}
		}
		switch {
		case e.do != nil:
			e.do()
		case e.acked > 0:
			s.acknowledge(e.who, e.acked)
		default:
			s.wake(e.who)
		}
	}
	s.now = uint64(until)
}

// spread is the time in which n connections are opened.
func spread(n int) time.Duration {
	return min(time.Duration(n)*300*time.Microsecond, 50*time.Millisecond)
}

// open opens n connections whose applications write so many bytes a second.
func (s *simulation) open(n int, rtt time.Duration, demand float64) []*sender {
	return s.openIn(s.budget, n, rtt, demand)
}

// openIn opens them in a bloc.
func (s *simulation) openIn(b *Budget, n int, rtt time.Duration, demand float64) []*sender {
	var all []*sender
	for range n {
		f := &sender{in: b, rtt: uint64(rtt), cwnd: initialWindow, on: true, demand: demand, refill: s.now}
		s.setPace(f)
		s.arm(f, s.now+uint64(s.random.Int63n(int64(spread(n)))))
		all = append(all, f)
	}
	return all
}

// stop lets applications write nothing more.
func (s *simulation) stop(fs []*sender) {
	for _, f := range fs {
		f.on = false
	}
}

// resume lets them write again, with slow start after idle.
func (s *simulation) resume(fs []*sender) {
	for _, f := range fs {
		f.on = true
		f.cwnd = min(f.cwnd, initialWindow)
		f.refill = s.now
		s.arm(f, max(s.now, f.next))
	}
}

func (s *simulation) arm(f *sender, when uint64) {
	if !f.armed {
		f.armed = true
		s.at(when, event{who: f})
	}
}

// setPace does what the programs do at each round trip that TCP measures.
func (s *simulation) setPace(f *sender) {
	acknowledged := (f.sent - f.flight) * mss
	if f.total >= Newcomer && s.now < f.rests && acknowledged < f.asked {
		return
	}
	rate := f.in.Pace(&f.Flow)
	if g := s.below[f]; g != nil {
		g.Window = f.Window
		rate = min(rate, s.inner.Pace(g))
	}
	f.rests = (s.now/longestJiffy + 1) * longestJiffy
	f.asked = acknowledged + rate*seldom/second
	f.pace = max(rate*mss/Segment, 1)
	f.paced = f.paced || f.in.Binds(s.now) || s.below[f] != nil || f.rtt > soonPaced
	if !f.paced {
		f.pace = unpaced
		f.asked = min(f.asked, acknowledged+seldomFree)
	}
}

// wake sends one packet if pacing, cwnd and the application let it.
func (s *simulation) wake(f *sender) {
	f.armed = false
	switch {
	case !f.on || f.flight >= f.cwnd: // resume or an acknowledgement arms it
	case s.now < f.next:
		s.arm(f, f.next)
	default:
		n := s.autosize(f)
		if wait := s.take(f, n); wait > 0 {
			s.arm(f, s.now+wait)
			return
		}
		s.transmit(f, n)
	}
}

// autosize is the size of the next packet as of tcp_tso_autosize, in segments: 1 ms
// of the pace, two at least, and no more than half of cwnd (tcp_tso_should_defer).
func (s *simulation) autosize(f *sender) uint64 {
	bytes := f.pace >> 10
	if s.huge {
		bytes = maxGSO * mss
	}
	if f.small {
		return 1
	}
	return min(max(bytes/mss, 2), maxGSO, max(f.cwnd/2, 1), f.cwnd-f.flight)
}

// take takes n segments from the send buffer, or returns how long, in ns, until
// they are written.
func (s *simulation) take(f *sender, n uint64) (wait uint64) {
	if f.demand == 0 {
		return 0
	}
	need, now := float64(n*mss), s.now
	if f.every > 0 {
		now = max((s.now+f.phase)/f.every*f.every, f.phase) - f.phase // the last time that it wrote
	}
	f.written = min(f.written+f.demand*float64(now-min(f.refill, now))/second, sendBuffer)
	f.refill = max(f.refill, now)
	if f.written < need {
		f.AppLimited, f.drained = true, f.sent // as tcp_rate_check_app_limited
	}
	if f.written < need && f.every > 0 {
		return f.refill + f.every - s.now + 1
	}
	if f.written < need {
		return uint64((need-f.written)/f.demand*second) + 1
	}
	f.written -= need
	return 0
}

// transmit sends a packet of n segments and sets the timer of the next.
func (s *simulation) transmit(f *sender, n uint64) {
	f.sent += n
	f.flight += n
	f.widest = max(f.widest, f.flight)
	f.total += n * Segment
	if f.sent >= initialWindow {
		// As tcp_update_skb_after_send: lateness is made good by half a gap at most.
		gap := n * mss * second / f.pace
		f.next = s.now + gap - min(gap/2, s.now-min(s.now, f.next))
	}
	s.pay(f, n*Segment)
	if g := s.below[f]; g != nil {
		s.inner.Packet(g, s.now, n*Segment)
	}
	s.at(s.now+f.rtt, event{who: f, acked: n})
	s.arm(f, max(f.next, s.now)+s.lateness())
}

// pay charges a sender for a packet and what is on its tab, or puts it there.
func (s *simulation) pay(f *sender, wire uint64) {
	room, ends := f.pace*moment/second, s.now+moment
	if s.jiffy > 0 {
		room, ends = f.pace*jiffyRoom/second, (s.now/s.jiffy+1)*s.jiffy
	}
	if f.small && f.sent > initialWindow && s.now < f.tabEnds && f.tab+wire <= min(room, (f.total-wire-f.tab)/16) {
		s.count(s.now, wire)
		f.tab += wire
		f.onTab++
		return
	}
	s.count(s.now, wire)
	f.in.Packet(&f.Flow, s.now, f.tab+wire)
	f.tab, f.tabEnds = 0, ends
	f.charged++
}

func (s *simulation) charge(b *Budget, f *Flow, now, wire uint64) {
	s.count(now, wire)
	b.Packet(f, now, wire)
}

func (s *simulation) prepay(b *Budget, f *Flow, bytes uint64) {
	s.count(s.now, bytes)
	b.Prepay(f, bytes)
}

// count is of what goes over the wire.
func (s *simulation) count(now, wire uint64) {
	slot := int(now / uint64(slotLength))
	for len(s.wire) <= slot {
		s.wire = append(s.wire, 0)
	}
	s.wire[slot] += wire
}

func (s *simulation) lateness() uint64 {
	late := uint64(s.random.Int63n(int64(timerSlack)))
	if s.stalled != nil {
		late += s.stalled(s.now)
	}
	return late
}

// acknowledge ends a round trip: cwnd grows while it is what holds the flow back.
func (s *simulation) acknowledge(f *sender, n uint64) {
	f.flight -= n
	f.AppLimited = f.AppLimited && f.sent-f.flight <= f.drained
	if f.cwnd < min(2*f.widest, maxWindow) {
		f.cwnd += n
	}
	if s.pieces {
		f.cwnd = min(f.cwnd, max(f.pace/250/mss, 2))
	}
	f.Window = f.rtt
	s.setPace(f)
	if f.flight < f.cwnd {
		s.arm(f, max(s.now, f.next))
	}
}
