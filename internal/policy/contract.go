package policy

// contract reads the promises of a workload or of default:. viaKnown is false
// where a wrong via leaves open which links count.
func (m *meaning) contract(raw rawContract, via Via, viaKnown bool) Contract {
	c := Contract{Priority: m.priority(raw.priority, via, viaKnown), Egress: m.egress(raw.egress, via, viaKnown)}
	c.Span = raw.priority.key.span
	if raw.priority.key.kind == absent {
		c.Span = c.Egress.Span
	}
	return c
}

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
		help := "declare one, as in links: {eth0: {}}"
		if len(raw.perLink) > 0 && raw.perLink[0].link.text != "default" {
			help = "declare it: links: {" + quoteless(raw.perLink[0].link.text) + ": {}}"
		}
		m.noLinks(raw.key.span, "this priority has no link to hold on", help)
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
		if onLinks && !m.isLink[name] {
			m.report(each.link.span, "link "+quote(name)+" is not declared",
				DidYouMean(name, m.declared, "declare it under links, or leave it out"))
		} else if !onLinks {
			m.refuse(each.link.span, CheckLinkName(name))
		}
		if p.PerLink == nil {
			p.PerLink = make(map[string]Level, len(raw.perLink))
		}
		p.PerLink[name] = level
	}
	return p
}

// noLinks reports, once, that a promise has no link to be kept on.
func (m *meaning) noLinks(at Span, what, help string) {
	if !m.homeless {
		m.homeless = true
		m.report(at, what+": no links are declared", help)
	}
}

func (m *meaning) level(s scalar) Level {
	if !m.unquoted(s, "priority") {
		return Unset
	}
	level, err := ParseLevel(s.text)
	m.refuse(s.span, err)
	return level
}
