package cost

import (
	"testing"
	"time"
)

// Of 1000 softirqs those were drawn that stand for 800, and of interrupts those that stand for all.
func TestLuck(t *testing.T) {
	c := CPU{Number: 1, Runs: [Other + 1]uint64{50, 1000}, Stood: [Other + 1]uint64{50, 800}, Time: [Other + 1]time.Duration{5 * time.Millisecond, 80 * time.Millisecond}}
	row := Row{CPU: 1, Victim: Victim{PID: 7}, Packets: 800, Bytes: 80000}
	row.Times[IRQ], row.Times[RX], row.Times[Send] = 5*time.Millisecond, 80*time.Millisecond, 3*time.Millisecond
	r := &Reading{At: time.Second, CPUs: []CPU{c}, Rows: []Row{row}}
	d := r.Since(new(Reading))
	want := row
	want.Times[RX], want.Packets, want.Bytes = 100*time.Millisecond, 1000, 100000
	if len(d.Rows) != 1 || d.Rows[0] != want {
		t.Errorf("got %+v, want %+v", d.Rows, want)
	}
	if got := d.CPUs[0].Time; got != [Other + 1]time.Duration{5 * time.Millisecond, 100 * time.Millisecond} {
		t.Errorf("the CPU has %v", got)
	}
	if l := (CPU{Runs: [Other + 1]uint64{3}}).luck(); l.works[IRQ] != 1 || l.all != 1 {
		t.Errorf("where nothing was timed: %+v", l)
	}
}
