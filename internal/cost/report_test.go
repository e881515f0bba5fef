package cost

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func row(cpu int, pid uint32, name string, owner uint64, work Work, ms int, packets uint64) Row {
	r := Row{CPU: cpu, Victim: Victim{PID: pid, Name: name}, Owner: Owner{Cgroup, owner}, Packets: packets}
	r.Times[work] = time.Duration(ms) * time.Millisecond
	return r
}

var testNames = Names{
	Workload: func(v Victim) string {
		if v.PID == 10 {
			return "web"
		}
		return ""
	},
	Owner: func(o Owner) PartyID {
		if o.Kind == Nobody {
			return PartyID{Kind: PartyUnattributed}
		}
		return PartyID{Kind: PartyCgroup, Name: fmt.Sprintf("/%d", o.ID)}
	},
}

func TestSum(t *testing.T) {
	r := &Reading{
		At: 2 * time.Second, CPUs: []CPU{{Number: 0, Runs: [Other + 1]uint64{1, 100, 10, 4}, Timed: [Other + 1]uint64{1, 50, 5, 2}, Polls: 110, Packets: 400, Squeezed: 2}, {Number: 2}},
		Rows: []Row{
			row(0, 10, "nginx", 1, RX, 300, 30), row(0, 10, "nginx", 1, Send, 200, 0), row(0, 10, "nginx", 2, RX, 100, 10),
			row(0, 0, "swapper/0", 1, RX, 50, 5), row(0, 15, "ksoftirqd/0", 2, TX, 30, 4), row(0, 15, "ksoftirqd/0", 2, Other, 10, 1), row(2, 0, "swapper/2", 2, IRQ, 5, 0),
		},
	}
	got := Sum(r, testNames)
	web := PartyID{Kind: PartyTask, Name: "nginx", PID: 10, Workload: "web"}
	var victims []PartyID
	for _, v := range got.Victims {
		victims = append(victims, v.PartyID)
	}
	if diff := cmp.Diff([]PartyID{web, {Kind: PartyIdle}, {Kind: PartyKsoftirqd}}, victims); diff != "" {
		t.Error(diff)
	}
	if got.Victims[1].All != 0.055 { // the idle tasks of both CPUs are one
		t.Errorf("idle lost %g", got.Victims[1].All)
	}
	if c := got.CPUs[0]; c.Ksoftirqd != 0.04 || c.Idle != 0.05 || c.Stolen != 0.4 || c.Send != 0.2 {
		t.Errorf("CPU 0: %+v", c)
	}
	if c := got.Matrix[0]; c.Victim != web || c.Owner.Name != "/1" || c.Seconds != 0.5 || c.Packets != 30 {
		t.Errorf("the largest cell: %+v", c)
	}
	if got.Polls.Squeezed != 2 || got.Softirqs.RX != 100 || got.Softirqs.Other != 4 || got.Softirqs.Timed != 57 {
		t.Errorf("%+v %+v", got.Polls, got.Softirqs)
	}
	sums := map[string]float64{"victims": 0, "owners": 0, "matrix": 0, "CPUs": 0}
	for _, p := range got.Victims {
		sums["victims"] += p.All
	}
	for _, p := range got.Owners {
		sums["owners"] += p.All
	}
	for _, c := range got.Matrix {
		sums["matrix"] += c.Seconds
	}
	for _, c := range got.CPUs {
		sums["CPUs"] += c.All
	}
	for of, sum := range sums {
		if math.Abs(sum-got.Total.All) > 1e-9 {
			t.Errorf("%s sum up to %g, all is %g", of, sum, got.Total.All)
		}
	}
}

func TestSince(t *testing.T) {
	before := &Reading{
		At: time.Second, CPUs: []CPU{{Number: 0, Polls: 10}}, Rows: []Row{row(0, 10, "a", 1, RX, 5, 1), row(1, 10, "a", 1, RX, 7, 2), row(1, 12, "c", 1, RX, 9, 9)},
		Durations: Durations([]uint64{1, 2}), PollSizes: Sizes([]uint64{3}), Own: time.Millisecond, Watched: time.Second,
	}
	after := &Reading{
		At: 3 * time.Second, CPUs: []CPU{{Number: 0, Polls: 15}, {Number: 1, Polls: 4}},
		Rows:      []Row{row(0, 10, "a", 1, RX, 9, 3), row(1, 10, "a", 1, RX, 7, 2), row(1, 11, "b", 1, TX, 2, 1), row(1, 12, "c", 1, RX, 3, 3)},
		Durations: Durations([]uint64{1, 5}), PollSizes: Sizes([]uint64{4}), Own: 3 * time.Millisecond, Watched: 2 * time.Second,
	}
	d := after.Since(before)
	want := []Row{row(0, 10, "a", 1, RX, 4, 2), row(1, 11, "b", 1, TX, 2, 1), row(1, 12, "c", 1, RX, 3, 3)}
	if diff := cmp.Diff(want, d.Rows); diff != "" {
		t.Error(diff)
	}
	if d.At != 2*time.Second || d.Own != 2*time.Millisecond || d.Watched != time.Second || d.CPUs[0].Polls != 5 || d.CPUs[1].Polls != 4 || d.Durations.Count() != 3 || d.PollSizes.Count() != 1 {
		t.Errorf("%+v", d)
	}
}
