package plan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQueueSpeeds(t *testing.T) {
	at := time.Unix(1000, 0)
	spread := Spread{Driver: "card", Table: EvenTable, Queues: []RxQueue{
		{Interrupt: &Interrupt{Number: 38, Name: "card-rx-0", At: CPUs{1}}}, {RPS: CPUs{0, 1}},
	}}
	from := DeviceReading{Link: "eth0", When: at, Spread: spread, CPUs: []int{0, 1}, Total: Traffic{Packets: 100, Bytes: 1000},
		Queues: map[int]Traffic{0: {Packets: 10, Bytes: 100}, 1: {Packets: 1 << 32}}, Interrupts: map[int][]uint64{0: {5, 5}}}
	to := DeviceReading{Link: "eth0", When: at.Add(2 * time.Second), Spread: spread, CPUs: []int{0, 1}, Total: Traffic{Packets: 300, Bytes: 21000},
		Queues: map[int]Traffic{0: {Packets: 210, Bytes: 20100}, 1: {Packets: 0}}, Interrupts: map[int][]uint64{0: {5, 25}}}
	d, queues := QueueSpeeds(from, to)
	got, err := json.Marshal([]any{d, queues})
	want := `[{"link":"eth0","driver":"card","packets_per_second":100,"bits_per_second":80000,"rss_table":"even"},` +
		`[{"link":"eth0","queue":0,"packets_per_second":100,"bits_per_second":80000,"interrupt":{"number":38,"name":"card-rx-0","cpus":[1],"came":[{"cpu":1,"per_second":10}]}},` +
		`{"link":"eth0","queue":1,"packets_per_second":0,"bits_per_second":0,"rps":[0,1]}]]`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	from.Queues = nil // the driver counts none, or did not yet
	if _, queues := QueueSpeeds(from, to); queues[0].Packets != nil || queues[0].Bits != nil {
		t.Errorf("not counted: %v", queues)
	}
}

func TestSoftnet(t *testing.T) {
	from, err := ParseSoftnet("00000010 0 0 0 0 0 0 0 0 00000001 0 0 00000000\n000000ff 0 0 0 0 0 0 0 0 00000000 0 0 00000002 0 0\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(SoftnetReading{0: {16, 1}, 2: {255, 0}}, from); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	to := SoftnetReading{0: {36, 5}, 2: {255, 0}, 3: {9, 9}}
	if diff := cmp.Diff([]SoftnetSpeed{{CPU: 0, Packets: 10, HandedOver: 2}}, SoftnetSpeeds(from, to, 2)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	old, err := ParseSoftnet("1 0 0 0 0 0 0 0 0 0 0\n2 0 0 0 0 0 0 0 0 0 0\n")
	if diff := cmp.Diff(SoftnetReading{0: {1, 0}, 1: {2, 0}}, old); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, bad := range []string{"1 2 3\n", "x 0 0 0 0 0 0 0 0 0 0\n"} {
		if got, err := ParseSoftnet(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
