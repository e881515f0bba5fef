package bpf

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
)

func TestHoldingOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    tcpMemoryHolding
		want *plan.Holding
	}{
		{"none", tcpMemoryHolding{}, nil},
		{"whole", tcpMemoryHolding{Counts: 6 << 20}, &plan.Holding{Counts: 6 << 20}},
		{"fitted", tcpMemoryHolding{Counts: 200 << 10, Sndbuf: 65536, Rcvbuf: 4096}, &plan.Holding{Counts: 200 << 10, Capped: true}},
		{"squeezed", tcpMemoryHolding{Counts: 4096, Sndbuf: 8192, Rcvbuf: 4096}, &plan.Holding{Counts: 4096, Capped: true, Squeezed: true}},
	} {
		if diff := cmp.Diff(tt.want, holdingOf(tt.v)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// A verdict is of all packets of its socket unless each goes by its headers, whatever else is said of the socket.
func TestOfAll(t *testing.T) {
	for link, want := range map[linkEgressLinkNumber]bool{
		linkEgressLinkNumberEVERY_LINK:                                 true,
		linkEgressLinkNumberEVERY_LINK | linkEgressLinkNumberDATAGRAMS: true,
		linkEgressLinkNumberEVERY_LINK | linkEgressLinkNumberNESTED:    true,
		linkEgressLinkNumberFIRST_LINK:                                 true,
		linkEgressLinkNumberNO_LINK:                                    false,
		linkEgressLinkNumberNO_LINK | linkEgressLinkNumberDATAGRAMS:    false,
	} {
		var k linkEgressKnown
		k.Verdict.Link = uint16(link)
		if got := k.ofAll(); got != want {
			t.Errorf("%#x: of all packets is %v", link, got)
		}
	}
}
