package agent

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestRaiseStallsNobody raises starving streams, by turns, while a more urgent one
// sends less than it could: neither what is raised nor the urgent one stands still.
func TestRaiseStallsNobody(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	for _, scheduler := range []string{"htb", "prio", "ets"} {
		t.Run(scheduler, func(t *testing.T) {
			testutil.Needs(t, scheduler+" qdisc", "htb qdisc")
			raiseByTurns(t, scheduler)
		})
	}
}

func raiseByTurns(t *testing.T, scheduler string) {
	t.Helper()
	b := newBench(t)
	line, rounds := 50, 4 // Mbit/s
	if testing.Short() {
		line, rounds = 10, 2
	}
	urgent := line / 5
	policy := func(first, second int) string {
		return strings.Replace(b.policyAt(line, fmt.Sprintf(
			"  urgent: {match: [{port: 5201}], priority: 15, egress: {max: %dMbit}}\n  first: {match: [{port: 5202}], priority: %d}\n  second: {match: [{port: 5203}], priority: %d}\n",
			urgent, first, second)), "Mbit}", "Mbit, scheduler: "+scheduler+"}", 1)
	}
	for port := 5201; port <= 5203; port++ {
		b.iperfServer(t, port)
	}
	b.apply(t, policy(2, 0))
	rate := func(level int) func(*testing.T, time.Duration) float64 {
		return func(t *testing.T, over time.Duration) float64 { return b.leaves(t, over)[b.class(t, level)] }
	}
	b.iperfClient(t, b.dir, 5203, 120)
	untilBusy(t, rate(0))
	b.iperfClient(t, b.dir, 5202, 120)
	b.iperfClient(t, b.dir, 5201, 120)
	untilBusy(t, rate(15))
	levels := [2]int{2, 0}
	for round := range rounds {
		raised := (round + 1) % 2 // the one that starves
		levels[raised] = levels[1-raised] + 2
		b.apply(t, policy(levels[0], levels[1]))
		var first, second, carried float64
		going := func() bool {
			time.Sleep(time.Second) // whoever was held back grows again
			rates := b.leaves(t, time.Second)
			first, second, carried = rates[b.class(t, 15)], rates[b.class(t, levels[raised])], 0
			for _, r := range rates { // an emulated CPU may not fill the line
				carried += r
			}
			return first >= 0.8*float64(urgent) && second >= carried-1.25*float64(urgent) && carried >= 0.8*float64(line)
		}
		ok := going()
		// What was dropped of a flow that had given up what waited of it, and then saw it arrive
		// (F-RTO), is marked as lost by no acknowledgement but by its timer alone, and that
		// has grown by packets that waited for seconds. What waits in a queue still would
		// survive the timer.
		if wait := b.timer(t, 5202+raised); !ok && wait >= 200*time.Millisecond {
			t.Logf("levels %v: the raised one waits %v for its timer", levels, wait)
			time.Sleep(wait)
			ok = going()
		}
		// BBR takes a class where it starves for a policer if twice in a row it loses a fifth of
		// what it sends, at the same rate (bbr_lt_bw_sampling), and keeps to that rate for 48 rounds.
		if !ok && b.policed(t, 5202+raised) {
			begin := time.Now()
			for b.policed(t, 5202+raised) && time.Since(begin) < time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			t.Logf("levels %v: the raised one took its class for a policer, for another %v", levels, time.Since(begin).Round(time.Millisecond))
			ok = going()
		}
		if !ok {
			t.Errorf("levels %v: the urgent one has %.2f, the raised one %.2f of %.2f Mbit/s", levels, first, second, carried)
		}
	}
}

// timer is for how long the connections to a port may wait for their timers; those of one
// that moves are shorter than any that TCP sends again by.
func (b *bench) timer(t *testing.T, port int) (longest time.Duration) {
	t.Helper()
	out := b.here.Output("ss", "--tcp", "--numeric", "--options", "--no-header", "state", "established", "dport", "=", fmt.Sprintf(":%d", port))
	for _, m := range regexp.MustCompile(`timer:\(on,(?:(\d+)min)?(?:(\d+)(?:\.|sec))?(?:(\d{3})ms)?,`).FindAllStringSubmatch(out, -1) {
		var part [3]int
		for i := range part {
			part[i], _ = strconv.Atoi(m[i+1]) // none is 0
		}
		longest = max(longest, time.Duration(part[0])*time.Minute+time.Duration(part[1])*time.Second+time.Duration(part[2])*time.Millisecond)
	}
	return longest
}

// policed reports that BBR keeps a connection to a port to a rate that it takes for a
// policer's. Any other rate that it assumes is at least what it has seen last.
func (b *bench) policed(t *testing.T, port int) bool {
	t.Helper()
	out := b.here.Output("ss", "--tcp", "--numeric", "--info", "--no-header", "state", "established", "dport", "=", fmt.Sprintf(":%d", port))
	for _, m := range regexp.MustCompile(`bbr:\(bw:(\d+)bps.* delivery_rate (\d+)bps`).FindAllStringSubmatch(out, -1) {
		assumed, _ := strconv.ParseFloat(m[1], 64)
		seen, _ := strconv.ParseFloat(m[2], 64)
		if assumed < seen/2 {
			return true
		}
	}
	return false
}

// TestRaiseLeavesNoGap raises what sends all the time, as a stream does that has set out
// before all its packets had left the class that it starved in: they do not stay behind.
func TestRaiseLeavesNoGap(t *testing.T) {
	for _, scheduler := range []string{"htb", "prio", "ets"} {
		t.Run(scheduler, func(t *testing.T) {
			testutil.Needs(t, scheduler+" qdisc", "htb qdisc")
			b := newBench(t)
			const line = 5 // Mbit/s
			text := func(level int) string {
				return strings.Replace(b.policyAt(line, fmt.Sprintf(
					"  full: {match: [{port: 5201}], priority: 4}\n  raised: {match: [{port: 5202}], priority: %d}\n", level)), "Mbit}", "Mbit, scheduler: "+scheduler+"}", 1)
			}
			b.apply(t, text(2))
			class := func(level policy.Level) Class {
				t.Helper()
				all, err := b.Class(b.link.Name)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range all {
					if slices.Contains(c.Levels, level) {
						return c
					}
				}
				t.Fatalf("no class carries level %d", level)
				return Class{}
			}
			for _, port := range []uint16{5201, 5202} {
				b.flood(t, port)
			}
			for begin := time.Now(); class(2).Backlog == 0; time.Sleep(10 * time.Millisecond) {
				if time.Since(begin) > 30*time.Second {
					t.Fatal("nothing starves")
				}
			}
			b.apply(t, text(6))
			if c := class(2); c.Backlog > 0 {
				t.Errorf("%d bytes are left in the class that it was raised out of", c.Backlog)
			}
			if c := class(6); c.Backlog == 0 {
				t.Error("what was raised does not keep the line full")
			}
		})
	}
}

// flood sends datagrams to a port, more than the line takes, until the end of the test.
func (b *bench) flood(t *testing.T, port uint16) {
	t.Helper()
	var c net.Conn
	var err error
	b.here.Do(func() { c, err = net.Dial("udp4", netip.AddrPortFrom(b.far.IPv4.Addr(), port).String()) })
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ended := make(chan struct{})
	t.Cleanup(func() {
		close(ended)
		wg.Wait()
		_ = c.Close()
	})
	wg.Go(func() {
		packet := make([]byte, 1400)
		for {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
				for range 50 { // a busy CPU does not run a sender all the time
					_, _ = c.Write(packet) // nobody listens, and the queue is full
				}
			}
		}
	})
}

// class is the name by which leaves knows the class of a priority.
func (b *bench) class(t *testing.T, level int) string {
	t.Helper()
	return fmt.Sprintf("class %d", record(t, b.Agent).Links[b.link.Name].Queue.Map[level])
}
