package tc

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestStrict fills every class of a shaped queue and lets go: what waits leaves
// class by class, the most urgent first, at the rate, and of the classes that
// have to wait only what HTB's floor explains. The queue is full before it is
// looked at, so nothing depends on how fast anybody sends.
func TestStrict(t *testing.T) {
	for _, name := range []string{"htb 100M", "htb buckets", "prio 2 shaped", "ets shaped"} {
		t.Run(name, func(t *testing.T) { strict(t, caseNamed(t, name)) })
	}
	for _, s := range []policy.Scheduler{policy.HTB, policy.Prio, policy.ETS} {
		t.Run(string(s)+" of the ladder", func(t *testing.T) {
			testutil.Proves(t, testutil.Order)
			testutil.By(t, string(s))
			strict(t, onLadder(t, s, 100_000_000, 1))
		})
	}
}

func strict(t *testing.T, q plan.Queue) {
	t.Helper()
	for _, q.Rate = range []policy.Rate{100_000_000, 1_000_000} { // an emulated CPU does not fill 100 Mbit/s
		link, sink := wire(t, 1)
		all, held := drain(t, link, sink, q, upTo(q.Classes))
		for c := range q.Classes {
			waitsItsTurn(t, q, all, c)
		}
		if reached := lineRate(t, q, all[held:]); reached >= 0.7 || t.Failed() {
			return
		}
	}
	t.Error("at no rate the line was full while packets waited")
}

// An arrival is a packet at the far end: of which class, and when. Shares are
// numbered behind the classes.
type arrival struct {
	class int
	at    time.Time
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

const (
	payload  = 1400
	wireSize = payload + 42 // with the headers of UDP, IPv4 and Ethernet
)

// drain builds a queue, fills some of its classes and shares while the line is
// held to next to nothing, and gives the line its rate. It returns what arrives
// from the moment when the queue was full, in order, and how much of it while the
// line was held.
func drain(t *testing.T, link testutil.End, sink *net.UDPConn, q plan.Queue, fills []int) (all []arrival, held int) {
	t.Helper()
	apply(t, link, q)
	sent := make([]int, q.Classes+len(q.Shares))
	for _, c := range fills { // HTB's leaves have a frame in store, which a held line would owe for long
		sent[c] = sendLeaves(t, link, q, c, 2)
	}
	atRest(t, link)
	holdLine(t, link, q)
	for _, c := range fills {
		sent[c] += fill(t, link, q, c)
	}
	full := packets(countAll(t, link))
	ops, err := Steps(link.Index, q, Options{})
	if err == nil {
		err = runAll(ops) // changes the rate where it stands
	}
	if err != nil {
		t.Fatal(err)
	}
	held = packets(countAll(t, link)) - full
	atRest(t, link)
	rest := countAll(t, link)
	for c, counted := range rest {
		if n := int(counted.Packets + counted.Drops); n != sent[c] {
			t.Errorf("class %d counts %d packets of %d", c, n, sent[c])
		}
		if q.Leaf == plan.LeafBFIFO && counted.Drops > 0 {
			t.Errorf("class %d lost %d packets", c, counted.Drops)
		}
	}
	return receive(t, sink, packets(rest))[full:], held
}

// holdLine leaves the line little, and each share less of it. A share sends
// within its rate whatever is left of the line, and is in debt for as long as its
// packet takes at the rate of that time: a tenth keeps that short.
func holdLine(t *testing.T, link testutil.End, q plan.Queue) {
	t.Helper()
	hold := func(parent string, id uint32, rate policy.Rate) {
		tc(t, fmt.Sprintf("class change dev %s parent %s classid %s htb rate %dbit ceil %[4]dbit burst 1600 cburst 1600 quantum 65536",
			link.Name, parent, handleString(id), rate))
	}
	line := policy.Rate(100_000)
	if q.Scheduler == policy.HTB {
		line = max(line, q.Rate/100) // leaves send within their floors, and the line has to make up for it
	}
	for n, s := range q.Shares {
		hold(handleString(shaperClass), shareClassID(n), s.Min/10)
		line += s.Min / 10
	}
	hold("root", shaperClass, line)
}

// countAll counts the classes, and behind them the shares.
func countAll(t *testing.T, link testutil.End) (all []ShareCounters) {
	t.Helper()
	for _, c := range mustCount(t, link) {
		all = append(all, ShareCounters{c.Packets, c.Bytes, c.Drops, c.Backlog, c.QueueLen})
	}
	return append(all, mustShares(t, link)...)
}

func packets(counters []ShareCounters) (sum int) {
	for _, c := range counters {
		sum += int(c.Packets)
	}
	return sum
}

// fill sends to the leaves of a class or share until so much waits in it that one
// in fifty would be seen, or as much as it holds, and returns the number of
// packets.
func fill(t *testing.T, link testutil.End, q plan.Queue, class int) (sent int) {
	t.Helper()
	room := limit(uint64(q.Rate) / 8)
	if q.Leaves() > 1 {
		room = bucketLimit(uint64(q.Rate) / 8)
	}
	each := min(int(room)/wireSize, 160*(1+len(q.Shares))/q.Leaves())
	for range 10 {
		wait := int(countAll(t, link)[class].QueueLen)
		if wait >= each*q.Leaves()*3/4 {
			return sent
		}
		sent += sendLeaves(t, link, q, class, each-wait/q.Leaves())
	}
	t.Fatalf("class %d does not fill up", class)
	return 0
}

// sendLeaves sends so many packets to each leaf of a class or share, and returns
// how many that are.
func sendLeaves(t *testing.T, link testutil.End, q plan.Queue, class, each int) int {
	t.Helper()
	var written uint32
	if class < q.Classes {
		written = q.Written(policy.Level(slices.Index(q.Map[:], uint8(class))))
	} else {
		written = q.WrittenShare(class - q.Classes)
	}
	datagram := make([]byte, payload)
	datagram[0] = uint8(class)
	for b := range q.Leaves() {
		sendUDP(t, link, written+uint32(b), each, datagram)
	}
	return each * q.Leaves()
}

// waitsItsTurn fails the test where a class sent while a more urgent one waited.
// HTB's leaves may: each of them its floor and two frames.
func waitsItsTurn(t *testing.T, q plan.Queue, all []arrival, class int) {
	t.Helper()
	for len(all) > 0 && all[len(all)-1].class <= class {
		all = all[:len(all)-1] // from here on nobody more urgent waited
	}
	if len(all) == 0 {
		return
	}
	allowed := uint64(0)
	if q.Scheduler == policy.HTB {
		seconds := all[len(all)-1].at.Sub(all[0].at).Seconds()
		floor := float64(floorRate(uint64(q.Rate)/8, q.Leaves())) * seconds
		allowed = uint64(q.Leaves()) * (uint64(floor) + 2*frame)
	}
	early, urgent := 0, 0
	for _, a := range all {
		switch a.class {
		case class:
			early++
		case q.Classes - 1:
			urgent++
		}
	}
	if bytes := uint64(early * wireSize); bytes > allowed {
		t.Errorf("class %d sent %d bytes before its turn, where %d are allowed", class, bytes, allowed)
	}
	if share := float64(urgent) / float64(urgent+early); share < 0.98 {
		t.Errorf("the most urgent class has %.3f of what it and class %d sent", share, class)
	}
}

// lineRate is the part of its rate that the line reached, by the kernel's own
// clock; 0 where there is too little to measure. What a pause is longer than the
// burst can make up for is not counted: the CPU was away. The line is never faster
// than its rate, but for that burst and the packet that overdraws it.
func lineRate(t *testing.T, q plan.Queue, all []arrival) float64 {
	t.Helper()
	if len(all) < 16 {
		return 0
	}
	perSecond := float64(q.Rate) / 8
	most := burst(uint64(q.Rate) / 8)
	var busy float64
	for i, a := range all[1:] {
		busy += min(a.at.Sub(all[i].at).Seconds(), float64(most)/perSecond)
	}
	sent, took := float64((len(all)-1)*wireSize), all[len(all)-1].at.Sub(all[0].at)
	reached := sent / (busy * perSecond)
	t.Logf("%v: %d packets in %v are %.3f of it", q, len(all), took, reached)
	if sent > 1.05*took.Seconds()*perSecond+float64(most)+frame {
		t.Errorf("%.0f bytes went out in %v, which is too much for %v", sent, took, q.Rate)
	}
	return reached
}

// receive gives the next packets at the sink, in the order in which they came.
func receive(t *testing.T, sink *net.UDPConn, count int) []arrival {
	t.Helper()
	if err := sink.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var all []arrival
	datagram, control := make([]byte, 2*payload), make([]byte, 64)
	for range count {
		n, m, _, _, err := sink.ReadMsgUDPAddrPort(datagram, control)
		if err == nil && n == 0 {
			err = errors.New("an empty datagram")
		}
		if err != nil {
			t.Fatalf("receive packet %d of %d: %v", len(all), count, err)
		}
		at, err := stamp(control[:m])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, arrival{int(datagram[0]), at})
	}
	return all
}

// stamp is when the kernel received a packet.
func stamp(control []byte) (time.Time, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, err
	}
	for _, m := range messages {
		if m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(native.Uint64(m.Data)), int64(native.Uint64(m.Data[8:]))), nil
		}
	}
	return time.Time{}, fmt.Errorf("no time stamp in %x", control)
}

// TestDefaultClass: what has an ordinary priority goes with priority 0.
func TestDefaultClass(t *testing.T) {
	q := caseNamed(t, "htb reversed")
	link, _ := wire(t, 1)
	apply(t, link, q)
	sendUDP(t, link, 7, 20, make([]byte, 500))
	for c, counted := range atRest(t, link) {
		want := uint64(0)
		if c == int(q.Map[0]) {
			want = 20
		}
		if counted.Packets != want {
			t.Errorf("class %d counts %d packets, want %d", c, counted.Packets, want)
		}
	}
}
