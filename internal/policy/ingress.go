package policy

// ingress reads what the sockets of a workload may receive. It holds where they are,
// so it needs no link, but where what they answer shall wait.
func (m *meaning) ingress(raw rawBandwidth, via Via) Bandwidth {
	if raw.key.kind == absent {
		return Bandwidth{}
	}
	m.notByNetPrio(raw.key, "bandwidth", via)
	m.needsLimit(raw, "ingress")
	limit := m.limit(raw, "a workload", nil)
	limit.Method = m.receiveMethod(raw)
	return Bandwidth{limit, raw.key.span}
}

// ParseIngressMax is [ParseEgressMax] of what the sockets of a workload may receive.
func ParseIngressMax(s string) (Rate, error) { return parseMax(s, "a workload", "ingress") }
