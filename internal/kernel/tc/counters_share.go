package tc

import "github.com/weir-net/weir/internal/plan"

// ShareCounters is what a share has sent and not sent since its classes were made,
// within its rate and beyond. Packets are counted as in [ClassCounters].
type ShareCounters struct {
	Packets  uint64 // sent
	Bytes    uint64 // sent, with link headers
	Drops    uint64 // packets, by the leaves
	Backlog  uint64 // bytes that wait
	QueueLen uint64 // packets that wait
}

// Shares reads the counters of Weir's shares, by their numbers; nothing was sent in
// those that nobody has. Errors are those of [Counters].
func Shares(link int) ([]ShareCounters, error) {
	all, q, err := readQueue(link)
	if err != nil {
		return nil, err
	}
	have, out := all.index(), make([]ShareCounters, len(q.Shares))
	for n, s := range q.Shares {
		if s == (plan.Share{}) {
			continue
		}
		for b := range q.Leaves() {
			s, err := have.leafStats(shareLeafHandle(n, b), shareLeafID(n, b))
			if err != nil {
				return nil, refuse(link, ErrDrift, "count shares: %v", err)
			}
			out[n] = out[n].plus(s)
		}
	}
	return out, nil
}

func (c ShareCounters) plus(s stats) ShareCounters {
	c.Packets += s.packets
	c.Bytes += s.bytes
	c.Drops += uint64(s.drops)
	c.Backlog += uint64(s.backlog)
	c.QueueLen += uint64(s.qlen)
	return c
}
