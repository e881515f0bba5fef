package main

import (
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

// someRates are of a card with two queues, of which the driver does not count the second, and of
// a link without any.
func someRates() *agent.QueueRates {
	packets, traffic, cpu := 1200.0, 9.6e6, 5
	return &agent.QueueRates{
		Seconds: 2,
		Links: []plan.DeviceSpeed{
			{Link: "eth0", Driver: "mlx5_core", Packets: 1204, Bits: 9.7e6, Table: plan.EvenTable, Threaded: true,
				Rules: []plan.FlowRule{{MAC: plan.MAC{0x12, 0x34, 0xde, 0xad, 0xca, 0xfe}, Queue: 1}, {Addr: netip.MustParseAddr("10.0.0.7"), Queue: 0}}},
			{Link: "veth1", Driver: "veth"},
		},
		Queues: []plan.QueueSpeed{
			{Link: "eth0", Queue: 0, Packets: &packets, Bits: &traffic, Interrupt: &plan.InterruptSpeed{
				Number: 152, Name: "mlx5_comp0@pci:0000:d8:00.0", CPUs: plan.CPUs{5}, Came: []plan.CPUSpeed{{CPU: 5, PerSecond: 300}}}},
			{Link: "eth0", Queue: 1, RPS: plan.CPUs{0, 1, 2, 3}},
			{Link: "veth1", Queue: 0, Packets: new(float64), Bits: new(float64)},
		},
		CPUs:    []plan.SoftnetSpeed{{CPU: 0, Packets: 40}, {CPU: 5, Packets: 1200, HandedOver: 7}},
		Steered: []agent.SteeringStatus{{Link: "eth0", CPU: &cpu, Way: "flow rules to queue 1", Since: time.Unix(0, 0), Changed: []string{"interrupt 152 is CPU 3"}}},
	}
}

func TestSteerView(t *testing.T) {
	v := steerView{width: 160}
	text := strings.Join(strings.Fields(v.render(someRates())), " ")
	for _, want := range []string{
		"eth0 all 1,204 9.70 Mbit/s even mlx5_core",
		"eth0 0 1,200 9.60 Mbit/s 152 5 300 on CPU 5",
		"eth0 1 ? ? 0-3",
		"veth1 0 0 0 bit/s veth",
		"packets by CPU: CPU 0 40/s, CPU 5 1,200/s (woken by RPS 7.0/s)",
		"rule of eth0: to 12:34:de:ad:ca:fe: queue 1 rule of eth0: to 10.0.0.7: queue 0",
		"eth0: its queues are polled in threads of their own",
		"by flow rules to queue 1; not so any more: interrupt 152 is CPU 3",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, size := range [][2]int{{40, 0}, {40, 24}, {80, 10}, {200, 50}} {
		v := steerView{width: size[0], height: size[1]}
		for line := range strings.Lines(v.render(someRates())) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > size[0] {
				t.Errorf("%v: a line of %d: %s", size, n, line)
			}
		}
	}
}
