package tc

import "github.com/vishvananda/netlink/nl"

// stats are the counters of an entry. Packets have 64 bits: the 32 of
// TCA_STATS_BASIC wrap within the hour at a million packets a second.
type stats struct {
	bytes, packets                             uint64
	qlen, backlog, drops, requeues, overlimits uint32
}

// parseStats also reports whether there is a rate estimator among them.
func parseStats(b []byte) (s stats, estimator bool) {
	_ = eachAttr(b, func(typ uint16, v []byte) { // what is malformed counts nothing
		estimator = estimator || typ == nl.TCA_STATS_RATE_EST
		switch {
		case typ == nl.TCA_STATS_BASIC && len(v) >= 12:
			s.bytes, s.packets = native.Uint64(v), max(s.packets, uint64(native.Uint32(v[8:])))
		case typ == nl.TCA_STATS_PKT64 && len(v) >= 8:
			s.packets = native.Uint64(v)
		case typ == nl.TCA_STATS_QUEUE && len(v) >= 20:
			s.qlen, s.backlog, s.drops = native.Uint32(v), native.Uint32(v[4:]), native.Uint32(v[8:])
			s.requeues, s.overlimits = native.Uint32(v[12:]), native.Uint32(v[16:])
		}
	})
	return s, estimator
}
