package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// flips is how often a running connection's priority is changed on each rung.
func flips() int {
	if testing.Short() {
		return 10
	}
	return 100
}

// TestFlips changes the priority of a running connection many times on
// every rung: each time its packets are in the other class, and in no other.
func TestFlips(t *testing.T) {
	for _, scheduler := range []policy.Scheduler{policy.HTB, policy.Prio, policy.ETS, policy.MQPrio} {
		t.Run(string(scheduler), func(t *testing.T) {
			testutil.Proves(t, testutil.Follow)
			testutil.By(t, string(scheduler))
			testutil.Needs(t, string(scheduler)+" qdisc")
			b := newBenchOn(t, testutil.VethOptions{Queues: 4})
			rate := ", rate: 20Mbit"
			if scheduler == policy.MQPrio {
				rate = "" // it holds none
			}
			b.apply(t, fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: %s%s}\nworkloads:\n  other: {match: [{port: 9}], priority: 1}\n",
				b.link.Name, scheduler, rate))
			b.trickle(t)
			effective := 0
			var effects []float64
			for i := range flips() {
				levels := [2]policy.Level{15, 10} // other packets of this host are in neither class
				effect, ok := b.flip(t, levels[i%2], levels[1-i%2])
				if ok {
					effective++
				}
				effects = append(effects, float64(effect)/float64(time.Millisecond))
			}
			t.Logf("%d of %d effective, after %.1f ms in the median", effective, flips(), median(effects))
			if effective != flips() {
				t.Errorf("%d of %d flips were effective", effective, flips())
			}
		})
	}
}

// flip gives this process' connections a level. It returns how long it took
// until their packets went by the class of that level, and whether none went by
// that of the other from then on.
func (b *bench) flip(t *testing.T, level, other policy.Level) (effect time.Duration, effective bool) {
	t.Helper()
	sent := func() (right, wrong uint64) {
		classes, err := b.Class(b.link.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range classes {
			switch {
			case slices.Contains(c.Levels, level):
				right += c.Packets
			case slices.Contains(c.Levels, other):
				wrong += c.Packets
			}
		}
		return right, wrong
	}
	until := func(right uint64) bool {
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond / 2) {
			if r, _ := sent(); r >= right {
				return true
			}
		}
		return false
	}
	before, _ := sent()
	begin := time.Now()
	if err := b.Set(context.Background(), uint32(os.Getpid()), Terms{Priority: &policy.Priority{Default: level}}); err != nil {
		t.Fatal(err)
	}
	if !until(before + 1) {
		return 0, false
	}
	effect = time.Since(begin)
	// What was on its way is let through before anything is counted.
	time.Sleep(5 * time.Millisecond)
	right, wrong := sent()
	ok := until(right + 5)
	_, after := sent()
	return effect, ok && after == wrong
}

// trickle sends without a pause, and slowly enough that nothing waits, over a
// connection of this process until the end of the test.
func (b *bench) trickle(t *testing.T) {
	t.Helper()
	var l net.Listener
	b.there.Do(func() { l = listen(t, "") })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 1<<16)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	}()
	var c net.Conn
	b.here.Do(func() {
		var err error
		if c, err = net.Dial("tcp4", netip.AddrPortFrom(b.far.IPv4.Addr(), uint16(l.Addr().(*net.TCPAddr).Port)).String()); err != nil {
			t.Error(err)
		}
	})
	if c == nil {
		t.FailNow()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		text := []byte(strings.Repeat("x", 500))
		for {
			if _, err := c.Write(text); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		c.Close()
		l.Close()
		<-ended
	})
}
