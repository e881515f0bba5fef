package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-net/weir/internal/cost"
)

// aReport is of a host with two workloads, of which one forwards.
func aReport() *cost.Report {
	web := cost.PartyID{Kind: cost.PartyWorkload, Name: "web"}
	nginx := cost.PartyID{Kind: cost.PartyTask, Name: "nginx", PID: 730, Workload: "web"}
	idle := cost.PartyID{Kind: cost.PartyIdle}
	passed := cost.PartyID{Kind: cost.PartyForwarded, Name: "eth1"}
	return &cost.Report{
		Seconds: 2, Accounting: cost.ByTick, Meter: 0.004, MeterPart: 0.25,
		Total: cost.Share{RX: 0.9, Send: 0.1, All: 1},
		CPUs:  []cost.CPUShare{{CPU: 0, Share: cost.Share{RX: 0.9, All: 0.9}, Stolen: 0.6, Idle: 0.3}, {CPU: 1, Share: cost.Share{Send: 0.1, All: 0.1}}},
		Victims: []cost.Party{
			{PartyID: nginx, Share: cost.Share{RX: 0.6, Send: 0.1, All: 0.7}, Packets: 20000}, {PartyID: idle, Share: cost.Share{RX: 0.3, All: 0.3}, Packets: 9000},
		},
		Owners: []cost.Party{{PartyID: passed, Share: cost.Share{RX: 0.8, All: 0.8}, Packets: 25000}, {PartyID: web, Share: cost.Share{RX: 0.1, Send: 0.1, All: 0.2}, Packets: 4000}},
		Matrix: []cost.Cell{
			{Victim: nginx, Owner: passed, Seconds: 0.5}, {Victim: idle, Owner: passed, Seconds: 0.3}, {Victim: nginx, Owner: web, Seconds: 0.2},
		},
		Softirqs: cost.SoftirqRuns{RX: 20000, Timed: 5000, Microseconds: cost.Summary{
			P50: 2, P90: 8, P99: 40, Max: 123, Buckets: []cost.Bucket{{Low: 1.5, Count: 10}, {Low: 2, Count: 80}, {Low: 3.5, Count: 10}, {Low: 40, Count: 1}},
		}},
		Polls:    cost.Polls{Count: 20000, Packets: 29000, Exhausted: 10, Squeezed: 2, Sizes: cost.Summary{P50: 1, P90: 2, P99: 8, Max: 64, Buckets: []cost.Bucket{{Low: 1, Count: 90}, {Low: 64, Count: 2}}}},
		Warnings: []string{"what tasks do in sendmsg and recvmsg is not known: the kernel hides its addresses"},
	}
}

func TestCostView(t *testing.T) {
	for by, want := range map[string][]string{
		"victim": {"victim workload networking", "730 nginx web 35.0 % 0 30.0 %", "(idle) 15.0 %"},
		"owner":  {"(forwarded to eth1) 40.0 %", "web 10.0 %"},
		"cpu":    {"CPU networking", "0 45.0 %"},
		"matrix": {"web 35.0 % 25.0 % 10.0 %", "(idle) 15.0 % 15.0 % 0"},
	} {
		v := costView{width: 100}
		text := strings.Join(strings.Fields(v.render(aReport(), by)), " ")
		for _, w := range append(want, "networking took 50.0 % of a CPU, of 2 CPUs, in 2s", "meter 0.20 % of a CPU: it looks for 25 % of the time, and times 1 softirq of 4 then", "5/s used up their budget, 1/s squeezed", "warning: what tasks do") {
			if !strings.Contains(text, w) {
				t.Errorf("by %s there is no %q in\n%s", by, w, text)
			}
		}
	}
}

// Whatever the size of a screen, what is said fits it.
func TestCostViewFits(t *testing.T) {
	r := aReport()
	for pid := range uint32(50) {
		r.Victims = append(r.Victims, cost.Party{PartyID: cost.PartyID{Kind: cost.PartyTask, Name: "a-long-name-it-is", PID: 100000 + pid}, Share: cost.Share{All: 0.001}})
	}
	for _, size := range [][2]int{{40, 10}, {80, 24}, {200, 60}} {
		for _, by := range costViews {
			v := costView{width: size[0], height: size[1]}
			lines := strings.Split(strings.TrimSuffix(v.render(r, by), "\n"), "\n")
			if wide := slices.IndexFunc(lines, func(l string) bool { return utf8.RuneCountInString(l) > size[0] }); wide >= 0 {
				t.Errorf("%v by %s: %q is too wide", size, by, lines[wide])
			}
			if size[1] >= 24 && len(lines) > size[1] {
				t.Errorf("%v by %s: %d lines", size, by, len(lines))
			}
			if !slices.ContainsFunc(lines[:min(len(lines), size[1])], func(l string) bool { return strings.Contains(l, " %") && !strings.HasPrefix(l, "networking") }) {
				t.Errorf("%v by %s: no row is seen\n%s", size, by, strings.Join(lines, "\n"))
			}
		}
	}
}

func TestBars(t *testing.T) {
	for want, s := range map[string]cost.Summary{
		"":      {},
		"█":     {Buckets: []cost.Bucket{{Low: 1, Count: 3}}},
		"▁█▂ ▁": {Buckets: []cost.Bucket{{Low: 1, Count: 1}, {Low: 2, Count: 40}, {Low: 3.9, Count: 40}, {Low: 4, Count: 14}, {Low: 16, Count: 1}}},
		"█▄":    {Buckets: []cost.Bucket{{Low: 0.3, Count: 10}, {Low: 0.5, Count: 5}}},
	} {
		if got := bars(s); got != want {
			t.Errorf("%v: %q, want %q", s.Buckets, got, want)
		}
	}
}

// Without a meter there is what the kernel counts, and what is not known is said.
func TestCostViewOfCounters(t *testing.T) {
	r := aReport()
	r.Rung = cost.ByCounters
	r.CPUs[0].Busy, r.CPUs[0].Softirqs = 1, 0.5
	v := costView{width: 100}
	text := strings.Join(strings.Fields(v.render(r, "victim")), " ")
	for _, want := range []string{"CPU busy all softirqs squeezes/s 0 50.0 % 25.0 % 0", "net_rx 10,000/s, net_tx 0/s", "warning: what tasks do"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
}
