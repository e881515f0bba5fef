package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"

	"github.com/weir-net/weir/internal/plan"
)

// A sizeTable has a qdisc count packets as what they stand for. What is counted is the entry of
// the table for a length, shifted; beyond its end the kernel adds up whole tables: so one entry of
// 1 counts what a packet has above a length, in units.
type sizeTable struct {
	above int32 // a packet of so many bytes and one counts as a unit
	unit  uint8 // logarithm of its bytes
}

// weighing is the table of a queue in which packets wait as long as what they stand for takes.
var weighing = sizeTable{above: plan.WaitingLength, unit: plan.WaitingUnit}

const (
	stabBase     = 1  // TCA_STAB_BASE
	stabData     = 2  // TCA_STAB_DATA
	sizeSpec     = 24 // sizeof(struct tc_sizespec)
	specUnit     = 1  // offsetof(struct tc_sizespec, size_log)
	specAlign    = 2  // cell_align
	specOverhead = 4
	specSize     = 20 // tsize
)

// encode is the whole TCA_STAB attribute.
func (t sizeTable) encode() *nl.RtAttr {
	spec := make([]byte, sizeSpec)
	spec[specUnit] = t.unit
	align, above := int16(-1), -t.above
	native.PutUint16(spec[specAlign:], uint16(align))
	native.PutUint32(spec[specOverhead:], uint32(above))
	native.PutUint32(spec[specSize:], 1)
	a := nl.NewRtAttr(nl.TCA_STAB, nil)
	a.AddRtAttr(stabBase, spec)
	a.AddRtAttr(stabData, native.AppendUint16(nil, 1))
	return a
}

// decodeSizeTable is the zero table where it is none that Weir builds. The kernel gives no entries
// back.
func decodeSizeTable(b []byte) (t sizeTable, err error) {
	err = eachAttr(b, func(typ uint16, v []byte) {
		if typ != stabBase || len(v) < sizeSpec {
			return
		}
		is := sizeTable{above: -int32(native.Uint32(v[specOverhead:])), unit: v[specUnit]}
		if int16(native.Uint16(v[specAlign:])) == -1 && native.Uint32(v[specSize:]) == 1 {
			t = is
		}
	})
	return t, err
}

func (t sizeTable) String() string {
	return fmt.Sprintf("each byte above %d counts as %d", t.above, 1<<t.unit)
}
