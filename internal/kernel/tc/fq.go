package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"

	"github.com/weir-net/weir/internal/plan"
)

// fqPriomap is TCA_FQ_PRIOMAP, from 6.7 on.
const fqPriomap = 16

// fqBands is the number of fq's bands; they share by weight (9:3:1), not in
// strict order.
const fqBands = 3

// fq is an fq qdisc; without bands it is that of a kernel before 6.7.
type fq struct {
	banded bool
	bandMap
	fqRoom
}

// An fqRoom is what fq has room for, in packets, by which bits of their hash it tells flows
// apart that have no socket here, and whether it paces sockets by itself.
type fqRoom struct {
	limit, flowLimit, orphans uint32
	pacing                    bool
}

// fqUsual is what the kernel gives an fq by itself.
func fqUsual() fqRoom { return fqRoom{10_000, 100, 1<<10 - 1, true} }

// fqTimes is for packets that wait for their times of departure. One flow may have more of
// them than depart lets wait of one limit (CROWD), since what fq drops was charged for
// nothing. Of two flows that fq takes for one, what may go at once waits for the next packet of
// the other. The pace of sockets stays TCP's own: one that was left to fq once would be for
// good, and be nobody's behind any other queue.
func fqTimes() fqRoom { return fqRoom{32_768, 16_384, 1<<16 - 1, false} }

// fqDefaultMap is the map of an fq that nobody gave one: that of pfifo_fast.
func fqDefaultMap() bandMap { return bandMap{1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1} }

// encode gives the map to any kernel: those without bands skip the attribute.
func (o fq) encode() *nl.RtAttr {
	a := container(0)
	a.AddRtAttr(fqPriomap, (&nl.TcPrioMap{Bands: fqBands, Priomap: o.bandMap}).Serialize())
	a.AddRtAttr(nl.TCA_FQ_PLIMIT, nl.Uint32Attr(o.limit))
	a.AddRtAttr(nl.TCA_FQ_FLOW_PLIMIT, nl.Uint32Attr(o.flowLimit))
	a.AddRtAttr(nl.TCA_FQ_ORPHAN_MASK, nl.Uint32Attr(o.orphans))
	pacing := uint32(0)
	if o.pacing {
		pacing = 1
	}
	a.AddRtAttr(nl.TCA_FQ_RATE_ENABLE, nl.Uint32Attr(pacing))
	return a
}

// words takes a kernel without bands for one with the default map, so that one
// class is the same on both.
func (o fq) words() []word {
	return []word{
		{"priomap", mapString(o.bandMap[:])},
		{"limit", fmt.Sprintf("%dp", o.limit)}, {"flow_limit", fmt.Sprintf("%dp", o.flowLimit)},
		{"orphan_mask", fmt.Sprint(o.orphans)}, {"pacing", fmt.Sprint(o.pacing)},
	}
}

func (o fq) inPlace(optionSet) bool { return true }

func decodeFQ(b []byte) (optionSet, error) {
	o := fq{bandMap: fqDefaultMap()}
	err := eachAttr(b, func(typ uint16, v []byte) {
		switch {
		case typ == fqPriomap && len(v) >= nl.SizeofTcPrioMap:
			o.banded, o.bandMap = true, nl.DeserializeTcPrioMap(v).Priomap
		case typ == nl.TCA_FQ_PLIMIT && len(v) >= 4:
			o.limit = native.Uint32(v)
		case typ == nl.TCA_FQ_FLOW_PLIMIT && len(v) >= 4:
			o.flowLimit = native.Uint32(v)
		case typ == nl.TCA_FQ_ORPHAN_MASK && len(v) >= 4:
			o.orphans = native.Uint32(v)
		case typ == nl.TCA_FQ_RATE_ENABLE && len(v) >= 4:
			o.pacing = native.Uint32(v) != 0
		}
	})
	return o, err
}

// fqOf gives the last of three classes fq's first band. One class is an fq
// whose bands Weir leaves at the kernel's default, or one that has none.
func fqOf(q plan.Queue) fq {
	o := fq{bandMap: fqDefaultMap(), fqRoom: fqUsual()}
	if q.Leaf == plan.LeafFQ {
		o.fqRoom = fqTimes()
	}
	if q.Classes != fqBands {
		return o
	}
	o.banded = true
	for p, c := range q.Map {
		o.bandMap[p] = fqBands - 1 - c
	}
	return o
}
