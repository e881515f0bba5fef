package policy

// The least and the most that a workload or a link can be held to: what the fair
// rate of the flows below a limit is computed and simulated for (docs/pace.md).
const (
	MinEgress Rate = 64e3
	MaxEgress Rate = 100e9
)

// Limited reports whether anything is limited.
func (e Egress) Limited() bool {
	return e.given() || len(e.PerLink) != 0 || len(e.Toward) != 0
}

// egress reads the limits and the shares of a workload. viaKnown is false where a
// wrong via leaves open what carries them.
func (m *meaning) egress(raw rawBandwidth, toward []rawToward, via Via, viaKnown bool) Egress {
	e := Egress{Span: raw.key.span}
	if raw.key.kind == absent {
		return e
	}
	m.notByNetPrio(raw.key, "bandwidth", via)
	onLinks := via == ViaBPF && viaKnown && !m.linksOpen
	if onLinks && len(m.declared) == 0 {
		name := ""
		if len(raw.links) > 0 {
			name = raw.links[0].key.text
		}
		m.noLinks(e.Span, "this egress has no link to hold on", name)
		onLinks = false
	}
	if raw.keys.record && !raw.keys.hasAny(egressKeys[:]) {
		m.report(e.Span, "egress has neither max, pps, min, links nor weight", raw.help())
	}
	e.Limit = m.limit(raw, "a workload", m.only())
	e.Method = m.sendMethod(raw, m.declared, onLinks)
	if e.Method == MethodHTB {
		m.reachable(raw, e.Max, m.only())
	}
	for _, each := range raw.links {
		m.linkKey(each.key, onLinks)
		if each.keys.record && !each.keys.hasAny(eachKeys) {
			m.report(each.key.span, "egress of link "+quote(each.key.text)+" has neither max, pps nor min", each.help())
		}
		link := m.links[each.key.text]
		limit := m.limit(each, "a workload", link)
		limit.Method = m.sendMethod(each, []string{each.key.text}, onLinks)
		if limit.given() {
			if e.PerLink == nil {
				e.PerLink = make(map[string]Limit, len(raw.links))
			}
			m.reachable(each, limit.Max, link)
			e.PerLink[each.key.text] = limit
		}
	}
	if onLinks {
		m.shares(raw, &e)
	}
	e.Toward, e.Weight = m.toward(toward), m.weight(raw)
	return e
}

// only is the link that is the only one, nil where there are several or none.
func (m *meaning) only() *Link {
	if len(m.declared) != 1 {
		return nil
	}
	return m.links[m.declared[0]]
}

// notByNetPrio reports what net_prio shall carry besides a priority.
func (m *meaning) notByNetPrio(key scalar, what string, via Via) {
	if via == ViaNetPrio {
		m.report(key.span, "net_prio carries priorities only, and no "+what, "leave via out, or "+quoteless(key.text))
	}
}

// bandwidth reads what a link may carry in one direction.
func (m *meaning) bandwidth(raw rawBandwidth, link *Link, arrives bool) Bandwidth {
	m.needsLimit(raw, raw.key.text)
	limit := m.limit(raw, "a link", link)
	limit.Method = m.linkMethod(raw, limit.Burst, arrives)
	return Bandwidth{limit, raw.key.span}
}

// needsLimit reports a mapping that limits nothing.
func (m *meaning) needsLimit(raw rawBandwidth, what string) {
	if raw.keys.record && !raw.keys.hasAny(limitKeys) {
		m.report(raw.key.span, what+" has neither max nor pps", raw.help())
	}
}

// limit reads what is held to a limit, of bandwidth, of packets or of both.
func (m *meaning) limit(raw rawBandwidth, held string, link *Link) Limit {
	return Limit{Max: m.max(raw, held, link), Burst: m.burst(raw), PPS: m.pps(raw)}
}

// pps reads the limit of packets, 0 if there is none.
func (m *meaning) pps(raw rawBandwidth) PacketRate {
	if !m.unquoted(raw.pps, "pps") {
		return 0
	}
	pps, err := parsePPS(raw.pps.text)
	m.refuse(raw.pps.span, err)
	return pps
}

// max reads the limit of what is held to it, 0 if there is none. A percentage is of
// the link's rate.
func (m *meaning) max(raw rawBandwidth, held string, link *Link) Rate {
	if !raw.max.given() {
		return 0
	}
	max, err := m.amount(raw.max.text, link)
	if err == nil {
		err = checkMax(max, raw.max.text, held, quoteless(raw.key.text))
	}
	if err != nil {
		max = 0
	}
	m.refuse(raw.max.span, err)
	return max
}

// reachable reports a limit of one link that is above the link's rate, if it has a
// rate that is one.
func (m *meaning) reachable(raw rawBandwidth, max Rate, link *Link) {
	if link != nil && link.Rate >= MinRate && max > link.Rate {
		m.report(raw.max.span, "max "+max.String()+" can never be reached: the link's rate is "+link.Rate.String(),
			"lower it, or leave "+quoteless(raw.key.text)+" out")
	}
}

// ParseEgressMax reads a rate that a workload can be held to, as [ParseRate] reads
// rates: from MinEgress to MaxEgress. The error is a *ValueError.
func ParseEgressMax(s string) (Rate, error) { return parseMax(s, "a workload", "egress") }

// parseMax reads a rate that something can be held to; key is what says so.
func parseMax(s, held, key string) (Rate, error) {
	rate, err := ParseRate(s)
	if err == nil {
		err = checkMax(rate, s, held, key)
	}
	if err != nil {
		return 0, err
	}
	return rate, nil
}

// checkMax refuses a rate, written as s, that nothing can be held to.
func checkMax(rate Rate, s, held, key string) error {
	switch {
	case rate < MinEgress:
		return &ValueError{"max " + clip(s) + " is below " + MinEgress.String() + ", the least that " + held + " can be held to", "raise it"}
	case rate > MaxEgress:
		return &ValueError{"max " + clip(s) + " is above " + MaxEgress.String() + ", the most that " + held + " can be held to",
			"lower it, or leave " + key + " out"}
	}
	return nil
}

// help shows how the limit is written.
func (r rawBandwidth) help() string { return maxHelp(quoteless(r.key.text)) }

func maxHelp(key string) string { return "as in " + key + ": {max: 50Mbit}" }
