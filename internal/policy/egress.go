package policy

// The least and the most that a workload can be held to: what the fair rate of
// a workload's flows is computed and simulated for (docs/limits.md).
const (
	MinEgress Rate = 64e3
	MaxEgress Rate = 100e9
)

// egress reads the limit of a workload. viaKnown is false where a wrong via
// leaves open what carries it.
func (m *meaning) egress(raw rawEgress, via Via, viaKnown bool) Egress {
	e := Egress{Span: raw.key.span}
	switch {
	case raw.key.kind == absent:
		return e
	case via == ViaNetPrio:
		m.report(e.Span, "net_prio carries priorities only: it cannot hold a limit", "leave via out, or egress")
	case viaKnown && !m.linksOpen && len(m.declared) == 0:
		m.noLinks(e.Span, "this egress has no link to be limited on", "declare one, as in links: {eth0: {}}")
	}
	if raw.keys.record && !raw.keys.has("max") {
		m.report(e.Span, "egress has no max", egressHelp)
	}
	if raw.max.given() {
		max, err := ParseEgressMax(raw.max.text)
		m.refuse(raw.max.span, err)
		e.Max = max
	}
	return e
}

// ParseEgressMax reads a rate that a workload can be held to, as [ParseRate] reads
// rates: from MinEgress to MaxEgress. The error is a *ValueError.
func ParseEgressMax(s string) (Rate, error) {
	rate, err := ParseRate(s)
	switch {
	case err != nil:
		return 0, err
	case rate < MinEgress:
		return 0, &ValueError{"max " + clip(s) + " is below " + MinEgress.String() + ", the least that a workload can be held to", "raise it"}
	case rate > MaxEgress:
		return 0, &ValueError{"max " + clip(s) + " is above " + MaxEgress.String() + ", the most that a workload can be held to",
			"lower it, or leave egress out"}
	}
	return rate, nil
}

// egressHelp shows how a limit is written.
const egressHelp = "as in egress: {max: 50Mbit}"
