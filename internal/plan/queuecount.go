package plan

import (
	"regexp"
	"strconv"
	"strings"
)

// A DeviceCounter is one that a driver has, by the name that it gives it (ethtool -S).
type DeviceCounter struct {
	Name  string
	Value uint64
}

// queuePackets and queueBytes are how drivers name what an RX queue has received. The
// counters of one queue are summed up: bnxt has one for each of unicast, multicast, broadcast.
var (
	queuePackets = regexp.MustCompile(`^(?:` + strings.Join([]string{
		`rx_queue_(\d+)_packets`,          // ixgbe, igb, igc, ice, hv_netvsc, virtio_net
		`rx(\d+)_packets`,                 // mlx5, mlx4, virtio_net
		`rx-(\d+)\.(?:rx_)?packets`,       // i40e, iavf, sfc
		`queue_(\d+)_rx_cnt`,              // ena
		`rx_(\d+)_(?:packets|pkts)`,       // mana, ionic
		`\[(\d+)\]: rx_[umb]cast_packets`, // bnxt, bnx2x
		`q(\d+)_rx_pkt_n`,                 // stmmac
		`Queue\[(\d+)\] InPackets`,        // atlantic
	}, `|`) + `)$`)
	queueBytes = regexp.MustCompile(`^(?:` + strings.Join([]string{
		`rx_queue_(\d+)_bytes`,
		`rx(\d+)_bytes`,
		`rx-(\d+)\.(?:rx_)?bytes`,
		`queue_(\d+)_rx_bytes`,
		`rx_(\d+)_bytes`,
		`\[(\d+)\]: rx_(?:[umb]cast_)?bytes`,
	}, `|`) + `)$`)
)

// QueueCounts finds what each RX queue of a device has received among its driver's
// counters, by queue. Those of a driver that names them in another way are missing.
func QueueCounts(counters []DeviceCounter) map[int]Traffic {
	found := map[int]Traffic{}
	add := func(q int, packets, bytes uint64) {
		t := found[q]
		t.Packets += packets
		t.Bytes += bytes
		found[q] = t
	}
	below := -1 // the queue under whose heading the next ones stand
	for _, c := range counters {
		name := strings.TrimSpace(c.Name)
		switch heading, _, _ := strings.Cut(name, "#"); {
		case heading == "Rx Queue": // vmxnet3
			below = int(c.Value)
			continue
		case strings.HasSuffix(heading, " Queue"):
			below = -1
			continue
		}
		if q, ok := queueIn(queuePackets, name); ok {
			add(q, c.Value, 0)
		} else if q, ok := queueIn(queueBytes, name); ok {
			add(q, 0, c.Value)
		} else if below >= 0 && strings.HasSuffix(name, "cast pkts rx") {
			add(below, c.Value, 0)
		} else if below >= 0 && strings.HasSuffix(name, "cast bytes rx") {
			add(below, 0, c.Value)
		}
	}
	return found
}

func queueIn(names *regexp.Regexp, name string) (queue int, ok bool) {
	match := names.FindStringSubmatch(name)
	for i := 1; i < len(match); i++ {
		if match[i] != "" {
			q, err := strconv.Atoi(match[i])
			return q, err == nil
		}
	}
	return 0, false
}
