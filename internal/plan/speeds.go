package plan

import (
	"maps"
	"slices"
	"time"
)

// SpeedsBetween is what happened between two readings. What is not in the earlier one, or
// was counted anew since, has begun at 0.
func SpeedsBetween(was, is Reading) *Speeds {
	c := clock{is.When.Sub(was.When)}
	s := &Speeds{Seconds: c.over.Seconds(), TCPMemory: is.TCPMemory, Links: []LinkSpeed{}}
	rows := map[string]*Row{RowUnclaimed: {}, RowUnclassified: {}, RowUnattributed: {}}
	for name, w := range is.Workloads {
		rows[name] = c.workload(was.Workloads[name], w)
	}
	var received Speed // by sockets that are counted
	for name, row := range rows {
		row.Workload, row.Links = name, []RowOnLink{}
		if row.Received != nil {
			received = received.plus(*row.Received)
		}
	}
	var arrives Speed
	for _, name := range slices.Sorted(maps.Keys(is.Links)) {
		l, known := was.Links[name]
		if !known {
			continue // it has no earlier count to be held against
		}
		speed := c.link(name, l, is.Links[name])
		s.Links = append(s.Links, speed)
		c.share(rows, speed, l, is.Links[name], passing(rows, was, is))
		arrives = arrives.plus(speed.Received)
	}
	if received != (Speed{}) {
		rest := arrives.minus(received)
		rows[RowUnattributed].Received = &rest
	}
	s.Rows = ordered(rows)
	return s
}

// A clock makes speeds of counts.
type clock struct{ over time.Duration }

// of is how many came in a second.
func (c clock) of(was, is uint64) float64 {
	if is < was { // counted anew
		was = 0
	}
	if c.over <= 0 {
		return 0
	}
	return float64(is-was) / c.over.Seconds()
}

func (c clock) speed(was, is Traffic) Speed {
	return Speed{8 * c.of(was.Bytes, is.Bytes), c.of(was.Packets, is.Packets)}
}

func (c clock) link(name string, was, is LinkReading) LinkSpeed {
	return LinkSpeed{
		Link: name, Rate: is.Rate, Sent: c.speed(was.Sent, is.Sent), Received: c.speed(was.Received, is.Received),
		Dropped: c.of(was.Dropped, is.Dropped),
	}
}

// workload is a row without what it sends.
func (c clock) workload(was, is WorkloadReading) *Row {
	row := &Row{Memory: is.Memory, Sockets: is.Sockets, Holds: is.Holds}
	if is.Received != nil {
		before := Traffic{}
		if was.Received != nil {
			before = *was.Received
		}
		speed := c.speed(before, *is.Received)
		row.Received = &speed
	}
	for _, terms := range slices.Sorted(maps.Keys(is.Limits)) {
		l, before := is.Limits[terms], was.Limits[terms]
		row.Dropped += c.of(before.Dropped, l.Dropped)
		row.Marked += c.of(before.Marked, l.Marked)
		if l.Most == 0 {
			continue
		}
		passed := c.of(before.Passed, l.Passed)
		if !l.Packets {
			passed *= 8
		}
		if percent := 100 * passed / float64(l.Most); row.Limit == nil || percent > row.Limit.Percent {
			row.Limit = &LimitUse{terms, percent}
		}
	}
	return row
}

// passing is which part of what came to links under each contract its limits have let
// through. What they drop was counted before.
func passing(rows map[string]*Row, was, is Reading) map[string]float64 {
	parts := map[string]float64{}
	for name := range rows {
		var came, dropped float64
		counts := clock{time.Second}
		for link := range is.Links {
			came += counts.of(was.Links[link].Under[name].Packets, is.Links[link].Under[name].Packets)
		}
		for terms, l := range is.Workloads[name].Limits {
			if !l.Ingress {
				dropped += counts.of(was.Workloads[name].Limits[terms].Dropped, l.Dropped)
			}
		}
		parts[name] = 1
		if came > 0 {
			parts[name] = max(0, 1-dropped/came)
		}
	}
	return parts
}

// share divides what a link sends among the rows.
func (c clock) share(rows map[string]*Row, link LinkSpeed, was, is LinkReading, part map[string]float64) {
	rest := link.Sent
	add := func(name string, s Speed) {
		if row := rows[name]; row != nil && s != (Speed{}) {
			row.Sent = row.Sent.plus(s)
			row.Links = append(row.Links, RowOnLink{link.Link, s})
			rest = rest.minus(s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is.Under)) {
		s := c.speed(was.Under[name], is.Under[name])
		add(name, Speed{s.Bits * part[name], s.Packets * part[name]})
	}
	add(RowUnattributed, rest)
}

// ordered sorts rows by name, nobody's last.
func ordered(rows map[string]*Row) []Row {
	last := []string{RowUnclaimed, RowUnclassified, RowUnattributed}
	var all []Row
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !slices.Contains(last, name) {
			all = append(all, *rows[name])
		}
	}
	for _, name := range last {
		all = append(all, *rows[name])
	}
	return all
}

// Nobodys reports whether a row is no workload's.
func (r Row) Nobodys() bool {
	return r.Workload == RowUnclaimed || r.Workload == RowUnclassified || r.Workload == RowUnattributed
}
