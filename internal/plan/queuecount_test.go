package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQueueCounts has counters as drivers name them; the i-th has the value 1 << i.
func TestQueueCounts(t *testing.T) {
	for driver, tt := range map[string]struct {
		names []string
		want  map[int]Traffic
	}{
		"virtio_net before 6.8": {[]string{"rx_queue_0_packets", "rx_queue_0_bytes", "rx_queue_0_xdp_packets", "rx_queue_1_packets", "tx_queue_0_packets"},
			map[int]Traffic{0: {Packets: 1, Bytes: 2}, 1: {Packets: 8}}},
		"virtio_net, which has moved them to netlink": {[]string{"rx_drops", "rx_xdp_packets", "rx0_drops", "rx0_xdp_packets", "rx0_kicks", "tx0_kicks"}, map[int]Traffic{}},
		"mlx5": {[]string{"rx_packets", "rx_bytes", "rx0_packets", "rx0_bytes", "rx0_csum_complete", "rx0_xdp_drop", "rx12_packets", "tx0_packets", "ch0_poll", "rx_0_bytes_phy"},
			map[int]Traffic{0: {Packets: 4, Bytes: 8}, 12: {Packets: 64}}},
		"ixgbe, igb": {[]string{"rx_packets", "tx_queue_0_packets", "tx_queue_0_bytes", "rx_queue_0_packets", "rx_queue_0_bytes", "rx_queue_0_drops", "rx_queue_0_csum_err"},
			map[int]Traffic{0: {Packets: 8, Bytes: 16}}},
		"i40e":   {[]string{"rx-0.packets", "rx-0.bytes", "tx-0.packets", "veb.rx_bytes"}, map[int]Traffic{0: {Packets: 1, Bytes: 2}}},
		"sfc":    {[]string{"rx-1.rx_packets", "tx-0.tx_packets"}, map[int]Traffic{1: {Packets: 1}}},
		"e1000e": {[]string{"rx_packets", "rx_bytes", "rx_broadcast", "rx_long_length_errors"}, map[int]Traffic{}},
		"veth":   {[]string{"peer_ifindex", "rx_queue_0_xdp_packets", "rx_queue_0_xdp_bytes", "rx_queue_0_drops", "rx_pp_alloc_fast"}, map[int]Traffic{}},
		"ena": {[]string{"suspend", "queue_0_tx_cnt", "queue_0_tx_bytes", "queue_0_rx_cnt", "queue_0_rx_bytes", "queue_0_rx_rx_copybreak_pkt"},
			map[int]Traffic{0: {Packets: 8, Bytes: 16}}},
		"bnxt": {[]string{"[0]: rx_ucast_packets", "[0]: rx_mcast_packets", "[0]: rx_bcast_packets", "[0]: rx_discards", "[0]: rx_ucast_bytes", "[0]: rx_mcast_bytes", "[0]: tx_ucast_packets", "[1]: rx_ucast_packets"},
			map[int]Traffic{0: {Packets: 7, Bytes: 48}, 1: {Packets: 128}}},
		"mana, ionic": {[]string{"rx_0_packets", "rx_0_bytes", "rx_1_pkts", "tx_0_packets"}, map[int]Traffic{0: {Packets: 1, Bytes: 2}, 1: {Packets: 4}}},
		// The value of a heading is the queue: 1 << 0 and 1 << 5 here.
		"vmxnet3": {[]string{"Rx Queue#", "  LRO pkts rx", "  LRO byte rx", "  ucast pkts rx", "  ucast bytes rx", "Rx Queue#", "  ucast pkts rx", "  bcast pkts rx", "Tx Queue#", "  ucast pkts tx"},
			map[int]Traffic{1: {Packets: 8, Bytes: 16}, 32: {Packets: 192}}},
	} {
		var counters []DeviceCounter
		for i, name := range tt.names {
			counters = append(counters, DeviceCounter{name, 1 << i})
		}
		if diff := cmp.Diff(tt.want, QueueCounts(counters)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", driver, diff)
		}
	}
}
