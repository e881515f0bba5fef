package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
		// Whoever was held back waits for its timer and grows again; who is left behind in a
		// starving class is there for as long as the line is full.
		var first, second, carried float64
		going := false
		for look := 0; look < 3 && !going; look++ {
			time.Sleep(time.Second)
			rates := b.leaves(t, time.Second)
			first, second, carried = rates[b.class(t, 15)], rates[b.class(t, levels[raised])], 0
			for _, r := range rates { // an emulated CPU may not fill the line
				carried += r
			}
			going = first >= 0.8*float64(urgent) && second >= carried-1.25*float64(urgent) && carried >= 0.8*float64(line)
		}
		if !going {
			t.Errorf("levels %v: the urgent one has %.2f, the raised one %.2f of %.2f Mbit/s", levels, first, second, carried)
		}
	}
}

// class is the name by which leaves knows the class of a priority.
func (b *bench) class(t *testing.T, level int) string {
	t.Helper()
	return fmt.Sprintf("class %d", record(t, b.Agent).Links[b.link.Name].Queue.Map[level])
}
