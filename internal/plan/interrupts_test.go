package plan

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseInterrupts(t *testing.T) {
	got := ParseInterrupts(`           CPU0       CPU2       
 26:          0         15  IO-APIC   4-edge      ttyS0
 38:          7       8629 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 16:          3          4   IO-APIC  16-fasteoi   ehci_hcd:usb1, eth0
 45:          1          2     GICv3  45 Level     eth1
524289:       5          6   PCI-MSI 524289-edge      eth2-TxRx-0
 99:          0          0
LOC:   50856410   53242828   Local timer interrupts
ERR:          0
`)
	want := InterruptTable{CPUs: []int{0, 2}, Lines: []InterruptLine{
		{26, []uint64{0, 15}, []string{"ttyS0"}},
		{38, []uint64{7, 8629}, []string{"virtio2-input.0"}},
		{16, []uint64{3, 4}, []string{"ehci_hcd:usb1", "eth0"}},
		{45, []uint64{1, 2}, []string{"eth1"}},
		{524289, []uint64{5, 6}, []string{"eth2-TxRx-0"}},
		{99, []uint64{0, 0}, nil},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := ParseInterrupts(""); len(got.CPUs)+len(got.Lines) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestQueueInterrupts has the names that drivers give their interrupts; each is numbered
// from 30 on.
func TestQueueInterrupts(t *testing.T) {
	for _, tt := range []struct {
		driver, link, bus string
		own               bool // the bus says that all of these are the device's
		names             string
		want              map[int]int // queue -> interrupt
	}{
		{"virtio_net", "eth0", "", true, "virtio2-config virtio2-input.0 virtio2-output.0 virtio2-input.1 virtio2-output.1 virtio2-control", map[int]int{0: 31, 1: 33}},
		{"mlx5", "ens1f0np0", "0000:d8:00.0", false, "mlx5_async0@pci:0000:d8:00.0 mlx5_comp0@pci:0000:d8:00.0 mlx5_comp1@pci:0000:d8:00.0 mlx5_comp0@pci:0000:d8:00.1", map[int]int{0: 31, 1: 32}},
		{"ixgbe, igb", "eth0", "", true, "eth0-TxRx-0 eth0-TxRx-1 eth0", map[int]int{0: 30, 1: 31}},
		{"igb of another", "eth0", "", false, "eth0-TxRx-0 eth01-TxRx-1 eth1-TxRx-1", map[int]int{0: 30}},
		{"igb, renamed since", "wan", "", true, "eth7-TxRx-0 eth7-TxRx-1 eth7", map[int]int{0: 30, 1: 31}},
		{"ice, i40e, iavf", "eth0", "", true, "ice-0000:3b:00.0:misc ice-eth0-TxRx-0 ice-eth0-TxRx-1", map[int]int{0: 31, 1: 32}},
		{"e1000e", "eth0", "", true, "eth0-rx-0 eth0-tx-0 eth0", map[int]int{0: 30}},
		{"e1000, r8169", "enp3s0", "", false, "enp3s0", map[int]int{0: 30}},
		{"ena", "eth0", "0000:00:05.0", true, "ena-mgmnt@pci:0000:00:05.0 eth0-Tx-Rx-0 eth0-Tx-Rx-1", map[int]int{0: 31, 1: 32}},
		{"bnxt", "eth0", "", true, "eth0-TxRx-0 eth0-TxRx-1", map[int]int{0: 30, 1: 31}},
		{"bnx2x", "eth0", "", true, "eth0 eth0-fp-0 eth0-fp-1", map[int]int{0: 31, 1: 32}},
		{"tg3", "eth0", "", true, "eth0-tx-0 eth0-rx-1 eth0-rx-2", map[int]int{1: 31, 2: 32}},
		{"vmxnet3", "eth0", "", true, "eth0-rxtx-0 eth0-rxtx-1 eth0-event-2", map[int]int{0: 30, 1: 31}},
		{"sfc", "eth0", "", true, "eth0-0 eth0-1", map[int]int{0: 30, 1: 31}},
		{"xen", "eth0", "", false, "eth0-q0-tx eth0-q0-rx eth0-q1-tx eth0-q1-rx", map[int]int{0: 31, 1: 33}},
		{"stmmac", "eth0", "", false, "eth0:mac eth0:rx-0 eth0:tx-0 eth0:rx-1", map[int]int{0: 31, 1: 33}},
		{"mana", "eth0", "7870:00:00.0", true, "mana_hwc@pci:7870:00:00.0 mana_q0@pci:7870:00:00.0 mana_q1@pci:7870:00:00.0", map[int]int{0: 31, 1: 32}},
		{"gve, whose numbers are others", "eth0", "", true, "gve-mgmnt gve-ntfy-blk0 gve-ntfy-blk1", map[int]int{}},
		{"veth", "eth0", "", false, "virtio2-input.0 ttyS0", map[int]int{}},
	} {
		p := Port{Link: tt.link, Bus: tt.bus, Numbers: map[int]bool{}}
		var lines []InterruptLine
		for i, name := range strings.Fields(tt.names) {
			lines = append(lines, InterruptLine{Number: 30 + i, Names: []string{name}})
			if tt.own {
				p.Numbers[30+i] = true
			}
		}
		got := map[int]int{}
		for q, l := range QueueInterrupts(lines, p) {
			got[q] = l.Number
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: %s", tt.driver, fmt.Sprint(got))
		}
	}
}
