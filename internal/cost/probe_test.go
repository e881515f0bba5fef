package cost

import (
	"testing"
	"time"
)

// What a loop lost is held against all that the meter has of its CPU: interrupts in the loop's name, and the
// meter's own programs, by how many of their runs were there.
func TestProbe(t *testing.T) {
	const cpu, pid = 1, 7
	l := Loop{Elapsed: time.Second, looked: time.Second, apparent: 990 * time.Millisecond, effective: 590 * time.Millisecond}
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	r := &Reading{
		At: time.Second, Own: us(40_000),
		CPUs: []CPU{{Number: 0, Runs: [Other + 1]uint64{RX: 100}}, {Number: cpu, Runs: [Other + 1]uint64{IRQ: 100, RX: 200}}},
		Rows: []Row{
			{CPU: cpu, Victim: Victim{PID: pid}, Owner: Owner{Kind: Dropped}, Times: Times{RX: us(200_000), Send: us(100_000)}},
			{CPU: cpu, Victim: Victim{PID: pid}, Owner: Owner{Kind: Nobody}, Times: Times{IRQ: us(150_000)}},
			{CPU: cpu, Victim: Victim{PID: 20, Name: "ksoftirqd/1"}, Times: Times{RX: us(10_000)}},
			{CPU: cpu, Victim: Victim{PID: 8}, Times: Times{RX: us(500_000)}},
			{CPU: 0, Victim: Victim{PID: pid}, Times: Times{RX: us(500_000)}},
		},
	}
	owner := func(o Owner) PartyID {
		if o.Kind == Dropped {
			return PartyID{Kind: PartyDropped}
		}
		return PartyID{Kind: PartyUnattributed}
	}
	p := Judge(cpu, pid, l, r, Names{Owner: owner})
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"apparent", p.Apparent, 99}, {"effective", p.Effective, 59}, {"stolen", p.Stolen, 40},
		{"by the meter", p.Metered, 35 + 3}, {"the meter", p.Meter, 3}, {"ksoftirqd", p.Ksoftirqd, 1},
	} {
		if c.got < c.want-1e-9 || c.got > c.want+1e-9 {
			t.Errorf("%s: %g %%, want %g", c.what, c.got, c.want)
		}
	}
	if len(p.Owners) != 2 || p.Owners[0].Kind != PartyDropped || p.Owners[1].Kind != PartyUnattributed {
		t.Errorf("owners: %+v", p.Owners)
	}
}
