package policy

// contract reads the promises of a workload or of default:. viaKnown is false
// where a wrong via leaves open which links count.
func (m *meaning) contract(raw rawContract, via Via, viaKnown bool) Contract {
	c := Contract{Priority: Priority{Default: Unset}}
	p := raw.priority
	if p.key.kind == absent {
		return c
	}
	c.Span = p.key.span
	if p.whole.given() {
		c.Priority.Default = m.level(p.whole)
	}
	onLinks := via == ViaBPF && viaKnown && !m.linksOpen
	if onLinks && len(m.declared) == 0 {
		m.noLinks(p)
		onLinks = false
	}
	for _, each := range p.perLink {
		level := Unset
		if each.level.given() {
			level = m.level(each.level)
		}
		name := each.link.text
		if name == "default" {
			c.Priority.Default = level
			continue
		}
		if onLinks && !m.isLink[name] {
			m.report(each.link.span, "link "+quote(name)+" is not declared",
				DidYouMean(name, m.declared, "declare it under links, or leave it out"))
		} else if !onLinks {
			m.refuse(each.link.span, CheckLinkName(name))
		}
		if c.Priority.PerLink == nil {
			c.Priority.PerLink = make(map[string]Level, len(p.perLink))
		}
		c.Priority.PerLink[name] = level
	}
	return c
}

// noLinks reports, once, that a priority has no queue to hold in.
func (m *meaning) noLinks(p rawPriority) {
	if m.homeless {
		return
	}
	m.homeless = true
	help := "declare one, as in links: {eth0: {}}"
	if len(p.perLink) > 0 && p.perLink[0].link.text != "default" {
		help = "declare it: links: {" + quoteless(p.perLink[0].link.text) + ": {}}"
	}
	m.report(p.key.span, "this priority has no link to hold on: no links are declared", help)
}

func (m *meaning) level(s scalar) Level {
	if !m.unquoted(s, "priority") {
		return Unset
	}
	level, err := ParseLevel(s.text)
	m.refuse(s.span, err)
	return level
}
