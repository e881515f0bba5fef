package policy

// contract reads the promises of a workload or of default:. viaKnown is false
// where a wrong via leaves open which links count.
func (m *meaning) contract(raw rawContract, via Via, viaKnown bool) Contract {
	c := Contract{
		Priority:      m.priority(raw.priority, via, viaKnown),
		Egress:        m.egress(raw.egress, raw.toward, via, viaKnown),
		Ingress:       m.ingress(raw.ingress, via),
		TCPMemory:     m.tcpMemory(raw.tcpMemory, via),
		TCPMemorySpan: raw.tcpMemory.key.span,
		VRF:           m.vrfOf(raw.vrf, via),
		VRFSpan:       raw.vrf.span,
	}
	for _, key := range []scalar{raw.priority.key, raw.egress.key, raw.ingress.key, raw.tcpMemory.key, raw.vrf} {
		if key.kind != absent {
			c.Span = key.span
			break
		}
	}
	return c
}

// Limited reports whether the contract limits what is sent or received.
func (c Contract) Limited() bool { return c.Egress.Limited() || c.Ingress.given() }

func (m *meaning) priority(raw rawPriority, via Via, viaKnown bool) Priority {
	p := Priority{Default: Unset}
	if raw.key.kind == absent {
		return p
	}
	if raw.whole.given() {
		p.Default = m.level(raw.whole)
	}
	onLinks := via == ViaBPF && viaKnown && !m.linksOpen
	if onLinks && len(m.declared) == 0 {
		name := ""
		if len(raw.perLink) > 0 && raw.perLink[0].link.text != "default" {
			name = raw.perLink[0].link.text
		}
		m.noLinks(raw.key.span, "this priority has no link to hold on", name)
		onLinks = false
	}
	for _, each := range raw.perLink {
		level := Unset
		if each.level.given() {
			level = m.level(each.level)
		}
		name := each.link.text
		if name == "default" {
			p.Default = level
			continue
		}
		m.linkKey(each.link, onLinks)
		if p.PerLink == nil {
			p.PerLink = make(map[string]Level, len(raw.perLink))
		}
		p.PerLink[name] = level
	}
	return p
}

// linkKey reports a key that is no declared link; where it need not be one, or the
// links are not known, one that cannot be the name of a device.
func (m *meaning) linkKey(key scalar, declared bool) {
	_, isLink := m.links[key.text]
	switch {
	case !declared:
		m.refuse(key.span, CheckLinkName(key.text))
	case !isLink:
		m.report(key.span, "link "+quote(key.text)+" is not declared",
			DidYouMean(key.text, m.declared, "declare it under links, or leave it out"))
	}
}

// noLinks reports, once, that a promise has no link to be kept on. It may name one.
func (m *meaning) noLinks(at Span, what, name string) {
	if m.homeless {
		return
	}
	m.homeless = true
	help := "declare one, as in links: {eth0: {}}"
	if name != "" {
		help = "declare it: links: {" + quoteless(name) + ": {}}"
	}
	m.report(at, what+": no links are declared", help)
}

func (m *meaning) level(s scalar) Level {
	if !m.unquoted(s, "priority") {
		return Unset
	}
	level, err := ParseLevel(s.text)
	m.refuse(s.span, err)
	return level
}
