package fair

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"
)

var all = flag.Bool("all", false, "simulate the combinations that take minutes, too")

// A shape is n flows with one round trip time below a limit.
type shape struct {
	n    int
	mbit float64
	rtt  time.Duration
}

func shapes() []shape {
	var s []shape
	for _, mbit := range []float64{0.064, 1, 10, 100, 1_000, 10_000, 100_000} {
		for _, n := range []int{1, 2, 8, 32, 128, 1000} {
			for _, rtt := range []time.Duration{10 * time.Microsecond, time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
				s = append(s, shape{n, mbit, rtt})
			}
		}
	}
	return s
}

func (c shape) String() string { return fmt.Sprintf("%gMbit/%dflows/%v", c.mbit, c.n, c.rtt) }

// impossible says why TCP can not fill the limit, whatever the controller. A
// quarter of the flows must be able to, as three quarters are stopped.
func (c shape) impossible() string {
	rest := c.rest()
	switch {
	case c.interval() > 2*time.Second:
		return fmt.Sprintf("a flow sends a packet every %v: too few for TCP", c.interval())
	case rest.limit()/uint64(rest.n) > MaxPace:
		return "a share is above MaxPace: 34 Gbit/s"
	case rest.interval() < 3*timerSlack:
		return fmt.Sprintf("a flow sends 64 KiB every %v, and timers are up to %v late", rest.interval(), timerSlack)
	}
	return ""
}

// long says which combinations are left out unless -all is given: those of millions
// of packets whose parts are looked at elsewhere. From 10 Gbit/s on that is 1000
// flows, which are looked at up to 1 Gbit/s (1 to 100 Mbit/s for each are there
// with fewer flows), and all round trips but 1 ms of 32 and 128 flows, as they have
// the pace of 1 to 32 flows at 1 Gbit/s, where no round trip is left out. With
// -short it is also 1 Gbit/s but for 1 ms, and from 10 Gbit/s on all but 8 flows.
func (c shape) long() bool {
	switch {
	case *all || c.mbit < 1_000:
		return false
	case testing.Short():
		return c.rtt != time.Millisecond || c.mbit > 1_000 && c.n != 8
	case c.mbit == 1_000 || c.n == 8:
		return false
	}
	return c.n == 1000 || c.rtt != time.Millisecond
}

// limit is in bytes/s.
func (c shape) limit() uint64 { return uint64(c.mbit * 1e6 / 8) }

// rest is the shape when three quarters of the flows have stopped.
func (c shape) rest() shape { return shape{max(1, c.n/4), c.mbit, c.rtt} }

// packet is the size of a packet of a flow that has its share, bytes on the wire.
func (c shape) packet() float64 {
	return min(max(2, math.Floor(float64(c.limit())/float64(c.n)/1024/mss)), maxGSO) * Segment
}

// interval is the time between two packets of one flow.
func (c shape) interval() time.Duration {
	return time.Duration(c.packet() * float64(c.n) / float64(c.limit()) * second)
}

// grain is how much of a window at the limit a packet of each of n flows is where
// they come independently: the root of n packets.
func (c shape) grain() float64 {
	return c.packet() * math.Sqrt(float64(c.n)) / (float64(c.limit()) * window.Seconds())
}

// slowStart is how long slow start takes to reach a share, whatever the controller.
func (c shape) slowStart() time.Duration {
	rounds := math.Log2(float64(c.limit()) / float64(c.n) * c.rtt.Seconds() / (initialWindow * Segment))
	return time.Duration(max(rounds+3, 0)) * c.rtt
}

// warm is after what time the mean is taken.
func (c shape) warm() time.Duration {
	return 2300*time.Millisecond + spread(c.n) + c.slowStart() + 10*c.interval()
}

// measured is for how long the mean is taken. From 10 Gbit/s on a second is 200,000
// packets of 64 KiB or more.
func (c shape) measured() time.Duration {
	if c.mbit >= 10_000 {
		return max(time.Second, 30*c.interval())
	}
	return max(5*time.Second, 30*c.interval())
}
