package policy

import "strings"

// checkWorkloadName refuses what cannot be the name of a workload: names are
// 1 to 63 characters out of a-z, 0-9, dot, underscore and dash, and start with a
// letter or digit. They become names of net_prio groups as they are. The error
// is a *ValueError.
func checkWorkloadName(name string) error {
	fits := func(s string) bool {
		if s == "" || len(s) > 63 || strings.ContainsRune("._-", rune(s[0])) {
			return false
		}
		return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
	}
	if fits(name) {
		return nil
	}
	help := "a to z, 0 to 9, dot, _ and -, at most 63, a letter or digit first"
	better := strings.ReplaceAll(strings.ToLower(name), " ", "-")
	if fits(better) {
		help = "write " + better
	}
	return &ValueError{"workload " + quote(name) + " is not a name for a workload", help}
}

func (m *meaning) workload(raw rawWorkload) Workload {
	w := Workload{Name: raw.name.text, Span: raw.name.span}
	m.refuse(raw.name.span, checkWorkloadName(w.Name))
	if !raw.keys.record {
		return w // reported as no mapping
	}
	viaKnown := true
	if raw.via.given() {
		w.Via, viaKnown = m.via(raw.via)
	}
	m.complete(raw)
	w.Match = make([]Selector, 0, len(raw.match))
	for _, rawSelector := range raw.match {
		selector, ok := m.selector(rawSelector)
		if !ok {
			continue
		}
		if selector.Kind == KindFlow && w.Via == ViaNetPrio {
			m.report(selector.Span, "net_prio knows processes, not packets: it cannot hold for a flow",
				"select by pid, cgroup, unit, user or exe, or leave via out")
		}
		w.Match = append(w.Match, selector)
	}
	if w.Via != ViaNetPrio { // else it is reported of each flow
		m.onlyFlows(raw, w.Match)
	}
	w.Contract = m.contract(raw.contract, w.Via, viaKnown)
	m.memcgMatch(raw, w.Match, w.Contract)
	if w.Contract.Span == (Span{}) {
		w.Contract.Span = w.Span
	}
	return w
}

// complete reports what a workload lacks.
func (m *meaning) complete(raw rawWorkload) {
	if !raw.keys.has("match") {
		help := "as in match: [{unit: nginx.service}]"
		if raw.name.text == "default" {
			help = "the contract of everything else is the key default: beside workloads:"
		}
		m.report(raw.name.span, "workload "+quote(raw.name.text)+" has no match, so no packet can belong to it", help)
	}
	if !raw.keys.hasAny(promiseKeys) {
		m.report(raw.name.span, "workload "+quote(raw.name.text)+" promises nothing",
			"give it a priority, 0 to 15 and 15 the highest, or a limit, "+maxHelp("egress"))
	}
}

func (m *meaning) via(s scalar) (via Via, ok bool) {
	switch s.text {
	case "bpf":
		return ViaBPF, true
	case string(ViaNetPrio):
		return ViaNetPrio, true
	}
	names := []string{"bpf", string(ViaNetPrio)}
	m.report(s.span, "via "+quote(s.text)+" is not known", DidYouMean(s.text, names, possible(names)))
	return ViaBPF, false
}
