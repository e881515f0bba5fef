package plan

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func traffic(packets, bytes uint64) Traffic { return Traffic{Packets: packets, Bytes: bytes} }

func TestSpeedsBetween(t *testing.T) {
	start := time.Unix(1000, 0)
	was := Reading{
		When: start,
		Links: map[string]LinkReading{
			"eth0": {Sent: traffic(100, 1000), Received: traffic(10, 100), Under: map[string]Traffic{"web": traffic(50, 500), RowUnclaimed: traffic(50, 500)}},
		},
		Workloads: map[string]WorkloadReading{
			"web":  {Limits: map[string]LimitReading{"egress": {Most: 80000, Passed: 500}, "eth0: pps": {Most: 100, Packets: true, Passed: 50}}},
			"bulk": {Limits: map[string]LimitReading{"egress": {Most: 1e6, Dropped: 7}}, Received: &Traffic{Bytes: 100}},
		},
	}
	bound := &MemoryJudged{Pool: Pool{May: 5}}
	is := Reading{
		When: start.Add(2 * time.Second),
		Links: map[string]LinkReading{
			"eth0": {
				Rate: 1e6, Sent: traffic(1100, 101000), Received: traffic(210, 20100), Dropped: 4,
				Under: map[string]Traffic{"web": traffic(250, 20500), "bulk": traffic(1000, 100000), RowUnclaimed: traffic(70, 1500), RowUnclassified: traffic(2, 200)},
			},
			"eth1": {Sent: traffic(1, 1), Under: map[string]Traffic{"web": traffic(9, 9000)}}, // it is new
		},
		Workloads: map[string]WorkloadReading{
			"web": {Limits: map[string]LimitReading{
				"egress": {Most: 80000, Passed: 10500, Marked: 6}, "eth0: pps": {Most: 100, Packets: true, Passed: 150}, "share": {Dropped: 0},
			}, Memory: bound, Sockets: 3, Holds: 4096},
			"bulk": {Limits: map[string]LimitReading{"egress": {Most: 1e6, Dropped: 507, Passed: 62500}}, Received: &Traffic{Bytes: 10100}},
		},
		TCPMemory: TCPMemory{Used: 9},
	}
	want := &Speeds{
		Seconds: 2, TCPMemory: TCPMemory{Used: 9},
		Links: []LinkSpeed{{Link: "eth0", Rate: 1e6, Sent: Speed{400000, 500}, Received: Speed{80000, 100}, Dropped: 2}},
		Rows: []Row{
			// Half of its packets were dropped, so half of what came has passed.
			{Workload: "bulk", Sent: Speed{200000, 250}, Links: []RowOnLink{{"eth0", Speed{200000, 250}}}, Received: &Speed{Bits: 40000}, Limit: &LimitUse{"egress", 25}, Dropped: 250},
			{Workload: "web", Sent: Speed{80000, 100}, Links: []RowOnLink{{"eth0", Speed{80000, 100}}}, Limit: &LimitUse{"egress", 50}, Marked: 3, Memory: bound, Sockets: 3, Holds: 4096},
			{Workload: RowUnclaimed, Sent: Speed{4000, 10}, Links: []RowOnLink{{"eth0", Speed{4000, 10}}}},
			{Workload: RowUnclassified, Sent: Speed{800, 1}, Links: []RowOnLink{{"eth0", Speed{800, 1}}}},
			{Workload: RowUnattributed, Sent: Speed{115200, 139}, Links: []RowOnLink{{"eth0", Speed{115200, 139}}}, Received: &Speed{Bits: 40000, Packets: 100}},
		},
	}
	if diff := cmp.Diff(want, SpeedsBetween(was, is), cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Error(diff)
	}
	if used := want.Links[0].Used(); used != 40 {
		t.Errorf("%v %% of the link are used", used)
	}
	// Nothing twice, at the same time, and from nothing: no number is none.
	for _, pair := range [][2]Reading{{is, is}, {Reading{When: start}, is}, {is, Reading{When: start.Add(time.Hour)}}} {
		for _, row := range SpeedsBetween(pair[0], pair[1]).Rows {
			if math.IsNaN(row.Sent.Bits) || math.IsInf(row.Sent.Bits, 0) || row.Sent.Bits < 0 {
				t.Errorf("%+v", row)
			}
		}
	}
}

// Whatever was counted, rows add up to what the devices sent.
func TestRowsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := func(name string) Traffic {
			return traffic(rapid.Uint64Range(0, 1e9).Draw(t, name+" packets"), rapid.Uint64Range(0, 1e12).Draw(t, name+" bytes"))
		}
		reading := func(at int64) Reading {
			r := Reading{When: time.Unix(at, 0), Links: map[string]LinkReading{}, Workloads: map[string]WorkloadReading{
				"a": {Limits: map[string]LimitReading{"l": {Most: 1000, Dropped: rapid.Uint64Range(0, 1e9).Draw(t, "dropped")}}}, "b": {},
			}}
			for _, link := range []string{"eth0", "eth1"} {
				under := map[string]Traffic{}
				for _, name := range []string{"a", "b", "gone", RowUnclaimed} {
					under[name] = count(name)
				}
				r.Links[link] = LinkReading{Sent: count("device"), Under: under}
			}
			return r
		}
		s := SpeedsBetween(reading(1), reading(3))
		var devices, rows Speed
		for _, l := range s.Links {
			devices = devices.plus(l.Sent)
		}
		for _, r := range s.Rows {
			rows = rows.plus(r.Sent)
			var links Speed
			for _, l := range r.Links {
				links = links.plus(l.Sent)
			}
			if off := links.minus(r.Sent); math.Abs(off.Bits)+math.Abs(off.Packets) > 1 {
				t.Errorf("%s sends %+v, on its links %+v", r.Workload, r.Sent, links)
			}
		}
		if off := devices.minus(rows); math.Abs(off.Bits) > 1 || math.Abs(off.Packets) > 1 {
			t.Errorf("devices sent %+v, rows %+v", devices, rows)
		}
	})
}
