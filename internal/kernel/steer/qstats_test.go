package steer

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink/nl"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestQueueStats asks the kernel for what no driver of its own tells: it answers, if with
// nothing, and nobody waits for more. Where a card is there that tells, each of its queues is.
func TestQueueStats(t *testing.T) {
	testutil.Needs(t, "root")
	names, err := Names()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "lo") {
		err := On(name, func(d *Device) error {
			s, err := d.Read()
			if err != nil {
				return err
			}
			counts, err := d.queueStats()
			if len(counts) > 0 && len(counts) != len(s.Queues) {
				t.Errorf("%s: %d of %d queues", name, len(counts), len(s.Queues))
			}
			t.Logf("%s: %v, %v", name, counts, err)
			return nil
		})
		if err != nil && !errors.Is(err, ErrNoDevice) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseQueueStats(t *testing.T) {
	message := func(attributes ...*nl.RtAttr) []byte {
		m := genericHead{qstatsGet, netdevVersion}.Serialize()
		for _, a := range attributes {
			m = append(m, a.Serialize()...)
		}
		return m
	}
	short := func(kind int, n uint32) *nl.RtAttr { return nl.NewRtAttr(kind, nl.Uint32Attr(n)) }
	long := func(kind int, n uint64) *nl.RtAttr { return nl.NewRtAttr(kind, nl.Uint64Attr(n)) }
	got, err := parseQueueStats([][]byte{
		message(short(qstatsDevice, 2), short(qstatsQueue, 0), short(qstatsType, typeRX), short(qstatsPackets, 7), short(qstatsBytes, 700)),
		message(short(qstatsDevice, 2), short(qstatsQueue, 3), short(qstatsType, typeRX), long(qstatsPackets, 1<<40), long(qstatsBytes, 1<<50)),
		message(short(qstatsDevice, 2), short(qstatsQueue, 1), short(qstatsType, typeRX), short(12, 7)), // a driver that does not count packets
		message(short(qstatsDevice, 2), short(qstatsQueue, 0), short(qstatsType, 1), short(qstatsPackets, 9), short(10, 9)),
	})
	if diff := cmp.Diff(map[int]plan.Traffic{0: {Packets: 7, Bytes: 700}, 3: {Packets: 1 << 40, Bytes: 1 << 50}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := parseQueueStats([][]byte{{1}}); err == nil {
		t.Error("half a message is one")
	}
}
