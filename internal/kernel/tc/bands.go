package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"

	"github.com/weir-net/weir/internal/policy"
)

// A bandMap is the kernel's priomap: the band of each priority, 0 the most
// urgent.
type bandMap [policy.Levels]uint8

// prio is a prio qdisc.
type prio struct {
	bands int
	bandMap
}

func (o prio) encode() *nl.RtAttr {
	p := nl.TcPrioMap{Bands: int32(o.bands), Priomap: o.bandMap}
	return nl.NewRtAttr(nl.TCA_OPTIONS, p.Serialize())
}

func (o prio) words() []word {
	return []word{{"bands", fmt.Sprint(o.bands)}, {"priomap", mapString(o.bandMap[:])}}
}

func (o prio) inPlace(other optionSet) bool {
	have, ok := other.(prio)
	return ok && have.bands == o.bands
}

func decodePrio(b []byte) (optionSet, error) {
	if len(b) < nl.SizeofTcPrioMap {
		return nil, tooShort("prio", b)
	}
	p := nl.DeserializeTcPrioMap(b)
	return prio{int(p.Bands), p.Priomap}, nil
}

// Attributes of an ets qdisc (linux/pkt_sched.h), which the nl package lacks.
const (
	etsBands = iota + 1
	etsStrict
	etsQuanta
	etsQuantaBand
	etsMap
	etsMapBand
)

// ets is an ets qdisc; strict counts the bands that are not shared by weight.
type ets struct {
	bands, strict int
	bandMap
}

// encode sets NLA_F_NESTED: ets is young enough for the kernel to insist on it.
func (o ets) encode() *nl.RtAttr {
	a := container(nestedFlag)
	a.AddRtAttr(etsBands, nl.Uint8Attr(uint8(o.bands)))
	a.AddRtAttr(etsStrict, nl.Uint8Attr(uint8(o.strict)))
	m := a.AddRtAttr(etsMap|nestedFlag, nil)
	for _, band := range o.bandMap {
		m.AddRtAttr(etsMapBand, nl.Uint8Attr(band))
	}
	return a
}

func (o ets) words() []word {
	return []word{{"bands", fmt.Sprint(o.bands)}, {"strict", fmt.Sprint(o.strict)}, {"priomap", mapString(o.bandMap[:])}}
}

func (o ets) inPlace(other optionSet) bool {
	have, ok := other.(ets)
	return ok && have.bands == o.bands
}

func decodeETS(b []byte) (optionSet, error) {
	var o ets
	err := eachAttr(b, func(typ uint16, v []byte) {
		switch {
		case typ == etsBands && len(v) > 0:
			o.bands = int(v[0])
		case typ == etsStrict && len(v) > 0:
			o.strict = int(v[0])
		case typ == etsMap:
			i := 0
			_ = eachAttr(v, func(_ uint16, band []byte) { // a short map shows as a difference
				if i < len(o.bandMap) && len(band) > 0 {
					o.bandMap[i] = band[0]
				}
				i++
			})
		}
	})
	return o, err
}
