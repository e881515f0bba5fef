package plan

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// spreadOver is a card with queues whose interrupts come to CPUs of the same number.
func spreadOver(queues int) Spread {
	s := Spread{Driver: "card", Table: EvenTable, TakesRules: true}
	for i := range queues {
		s.Queues = append(s.Queues, RxQueue{RPS: CPUs{0, 1}, Flows: 64, Interrupt: &Interrupt{Number: 30 + i, May: CPUs{0, 1, 2, 3}, At: CPUs{i}}})
	}
	return s
}

func TestSteer(t *testing.T) {
	mac := MAC{0x12, 0x34, 0xde, 0xad, 0xca, 0xfe}
	four, six := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")
	with := func(s Spread, change func(*Spread)) Spread { change(&s); return s }
	soft := Spread{Driver: "veth", Queues: []RxQueue{{RPS: CPUs{0, 1}}, {Flows: 8}}}
	for name, tt := range map[string]struct {
		d    Spread
		ask  SteerAsk
		want string // settings, or the error's end
	}{
		"software: RPS to the CPU": {soft, SteerAsk{CPU: 1, Queue: NoQueue},
			"RPS of queue 0: CPU 0-1 -> CPU 1; RPS of queue 1: off -> CPU 1; flows that queue 1 remembers (RFS): 8 -> 0"},
		"RPS off alone":         {soft, SteerAsk{CPU: NoCPU, Queue: NoQueue}, "RPS of queue 0: CPU 0-1 -> off; flows that queue 1 remembers (RFS): 8 -> 0"},
		"nothing to do":         {Spread{Queues: []RxQueue{{}}}, SteerAsk{CPU: NoCPU, Queue: NoQueue}, ""},
		"software has no rules": {soft, SteerAsk{CPU: 1, Queue: NoQueue, MACs: []MAC{mac}}, "only RPS can bring its packets to a CPU, and that brings all of them"},
		"software has no queue": {soft, SteerAsk{CPU: 1, Queue: 0}, "only RPS can bring its packets to a CPU, and that brings all of them"},
		"a card's table":        {with(spreadOver(2), func(s *Spread) { s.Queues[0] = RxQueue{Interrupt: s.Queues[0].Interrupt}; s.Queues[1].RPS = nil }), SteerAsk{CPU: 1, Queue: NoQueue}, "flows that queue 1 remembers (RFS): 64 -> 0; RSS table: even -> queue 1"},
		"rules": {with(spreadOver(3), func(s *Spread) {
			s.Queues = slices.Clone(s.Queues)[:1]
			s.Queues = append(s.Queues, RxQueue{Interrupt: &Interrupt{At: CPUs{2}}})
		}),
			SteerAsk{CPU: 2, Queue: NoQueue, MACs: []MAC{mac, mac}, Addrs: []netip.Addr{four, netip.MustParseAddr("::ffff:10.0.0.7"), six}},
			"RPS of queue 0: CPU 0-1 -> off; flows that queue 0 remembers (RFS): 64 -> 0; rule for 12:34:de:ad:ca:fe to queue 1: absent -> there; " +
				"rule for 10.0.0.7 to queue 1: absent -> there; rule for fd00::7 to queue 1: absent -> there"},
		"a rule that is there": {with(spreadOver(2), func(s *Spread) {
			s.Rules = []FlowRule{{MAC: mac, Queue: 1}}
			s.Queues[0], s.Queues[1] = RxQueue{}, RxQueue{Interrupt: s.Queues[1].Interrupt}
		}), SteerAsk{CPU: 1, Queue: NoQueue, MACs: []MAC{mac}}, ""},
		"a rule to elsewhere":    {with(spreadOver(2), func(s *Spread) { s.Rules = []FlowRule{{MAC: mac, Queue: 0}} }), SteerAsk{CPU: 1, Queue: NoQueue, MACs: []MAC{mac}}, "it has a rule for 12:34:de:ad:ca:fe already, to queue 0"},
		"no rules":               {with(spreadOver(2), func(s *Spread) { s.TakesRules = false }), SteerAsk{CPU: 1, Queue: NoQueue, MACs: []MAC{mac}}, "driver card takes no flow rules; without a destination all its packets can be steered by its RSS table"},
		"no table":               {with(spreadOver(2), func(s *Spread) { s.Table = "" }), SteerAsk{CPU: 1, Queue: NoQueue}, "driver card has no RSS table; it takes flow rules for a destination"},
		"neither":                {with(spreadOver(2), func(s *Spread) { s.Table, s.TakesRules = "", false }), SteerAsk{CPU: 1, Queue: NoQueue}, "driver card has no RSS table, and takes no flow rules"},
		"one queue":              {spreadOver(1), SteerAsk{CPU: 0, Queue: NoQueue, MACs: []MAC{mac}}, "RPS of queue 0: CPU 0-1 -> off; flows that queue 0 remembers (RFS): 64 -> 0"},
		"one queue's interrupt":  {spreadOver(1), SteerAsk{CPU: 3, Queue: NoQueue, Move: true}, "RPS of queue 0: CPU 0-1 -> off; flows that queue 0 remembers (RFS): 64 -> 0; interrupt 30: CPU 0-3 -> CPU 3"},
		"nobody there":           {spreadOver(2), SteerAsk{CPU: 3, Queue: NoQueue}, "CPU 3: no queue has its interrupt there"},
		"not that queue":         {spreadOver(2), SteerAsk{CPU: 0, Queue: 1}, "the interrupt of queue 1 comes to CPU 1: no queue has its interrupt there"},
		"no such queue":          {spreadOver(2), SteerAsk{CPU: 0, Queue: 2}, "there is no queue 2; its last is 1"},
		"a queue without one":    {with(spreadOver(2), func(s *Spread) { s.Queues[1].Interrupt = nil }), SteerAsk{CPU: 0, Queue: 1}, "the interrupt of queue 1 is not known"},
		"a loopback":             {Spread{Loopback: true, Queues: []RxQueue{{}}}, SteerAsk{CPU: 0, Queue: NoQueue}, "has no queue"},
		"a bond":                 {Spread{Below: []string{"eth0", "eth1"}, Queues: []RxQueue{{}}}, SteerAsk{CPU: 0, Queue: NoQueue}, "it stands on eth0, eth1, where its packets are handed to CPUs: steer that"},
		"a device without queue": {Spread{}, SteerAsk{CPU: 0, Queue: NoQueue}, "it has no RX queues"},
	} {
		s, err := Steer(tt.d, tt.ask)
		if err != nil {
			if !strings.HasSuffix(err.Error(), tt.want) || tt.want == "" {
				t.Errorf("%s: %v", name, err)
			}
			if errors.Is(err, ErrNoQueueThere) == errors.Is(err, ErrNotSteered) {
				t.Errorf("%s: %v wraps both or none", name, err)
			}
			continue
		}
		var texts []string
		for _, x := range s.Settings {
			texts = append(texts, x.String())
		}
		if got := strings.Join(texts, "; "); got != tt.want || s.Way == "" {
			t.Errorf("%s: by %q\n got %s\nwant %s", name, s.Way, got, tt.want)
		}
	}
}

func TestRSSTable(t *testing.T) {
	for _, tt := range []struct {
		table  []uint32
		queues int
		want   string
	}{
		{nil, 2, ""},
		{[]uint32{0, 1, 0, 1}, 2, EvenTable},
		{[]uint32{0, 1, 2, 0}, 3, EvenTable},
		{[]uint32{0, 0, 0, 0}, 1, EvenTable},
		{[]uint32{0, 0, 0, 0}, 2, "0"},
		{[]uint32{1, 1, 1, 1}, 2, "1"},
		{[]uint32{0, 0, 1, 1}, 2, "0,0,1,1"},
	} {
		text := RSSTable(tt.table, tt.queues)
		if text != tt.want {
			t.Errorf("%v of %d queues: %q, want %q", tt.table, tt.queues, text, tt.want)
		}
		want := tt.table
		if text == EvenTable {
			want = nil // the kernel makes it
		}
		if got, err := ParseRSSTable(text, len(tt.table)); text != "" && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "x", "0,1,2", "-1"} {
		if got, err := ParseRSSTable(bad, 4); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestMAC(t *testing.T) {
	want := MAC{0x12, 0x34, 0xde, 0xad, 0xca, 0xfe}
	for _, text := range []string{"12:34:de:ad:ca:fe", "12:34:DE:AD:CA:FE", "12-34-de-ad-ca-fe"} {
		if got, err := ParseMAC(text); err != nil || got != want || got.String() != "12:34:de:ad:ca:fe" {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "12:34:de:ad:ca", "12:34:de:ad:ca:fe:00", "12:34:de:ad:ca:xx", "12:34:de:ad:ca:0fe", "1234.dead.cafe"} {
		if got, err := ParseMAC(bad); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

// TestFlowRuleText: the record has a rule as it was, and a rule of one kind says nothing of the other.
func TestFlowRuleText(t *testing.T) {
	for want, rule := range map[string]FlowRule{
		`{"mac":"12:34:de:ad:ca:fe","queue":2}`: {MAC: MAC{0x12, 0x34, 0xde, 0xad, 0xca, 0xfe}, Queue: 2},
		`{"addr":"fd00::7","queue":0}`:          {Addr: netip.MustParseAddr("fd00::7")},
	} {
		text, err := json.Marshal(rule)
		if err != nil || string(text) != want {
			t.Errorf("%+v: %s, %v", rule, text, err)
		}
		var got FlowRule
		if err := json.Unmarshal(text, &got); err != nil || got != rule {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
