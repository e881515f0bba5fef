package policy

// ingress reads what the sockets of a workload may receive. It holds where they are,
// so it needs no link.
func (m *meaning) ingress(raw rawBandwidth, via Via) Bandwidth {
	if raw.key.kind == absent {
		return Bandwidth{}
	}
	m.notByNetPrio(raw, via)
	m.needsMax(raw, "ingress")
	return Bandwidth{Max: m.max(raw, "a workload", nil), Span: raw.key.span}
}

// ParseIngressMax is [ParseEgressMax] of what the sockets of a workload may receive.
func ParseIngressMax(s string) (Rate, error) { return parseMax(s, "a workload", "ingress") }
