package policy

// shares reads what a workload is promised of each link at least: min of every link
// that is declared, and where links names one, that of this one.
func (m *meaning) shares(raw rawBandwidth, e *Egress) {
	apart := map[string]rawBandwidth{}
	for _, each := range raw.links {
		if each.min.given() {
			apart[each.key.text] = each
		}
	}
	told := false
	for _, name := range m.declared {
		of, named := apart[name]
		if !named {
			of = raw
		}
		link := m.links[name]
		if !of.min.given() || !named && told {
			continue
		}
		min, ok := m.share(of, link, named)
		if !ok || !m.fits(of, min, link, e) {
			told = told || !named
			continue
		}
		if e.Min == nil {
			e.Min = map[string]Rate{}
		}
		e.Min[name] = min
	}
}

// share reads what is promised of one link; ok is false where that is wrong, and
// reported.
func (m *meaning) share(raw rawBandwidth, link *Link, named bool) (min Rate, ok bool) {
	if s := link.Scheduler; s != Auto && s != HTB && s != "" {
		help := "scheduler: htb does, and auto takes it"
		if !named {
			help += "; or name the links: links: {eth0: {min: " + clip(raw.min.text) + "}}"
		}
		m.report(raw.min.span, "scheduler "+string(s)+" of link "+quote(link.Name)+" promises nobody a part of it", help)
		return 0, false
	}
	min, err := m.amount(raw.min.text, link)
	if err == nil && min < MinRate {
		err = &ValueError{"min " + clip(raw.min.text) + " is below " + MinRate.String() + ", the least that can be promised", "raise it"}
	}
	m.refuse(raw.min.span, err)
	return min, err == nil
}

// fits reports whether a share is no more than the workload may take and the shares
// of the link come to no more than there is; what does not fit is reported.
func (m *meaning) fits(raw rawBandwidth, min Rate, link *Link, e *Egress) bool {
	for _, limit := range []struct {
		max Rate
		of  string
	}{
		{e.Max, "max"}, {e.PerLink[link.Name].Max, "max of link " + quote(link.Name)},
	} {
		if limit.max != 0 && min > limit.max {
			m.report(raw.min.span, "min "+min.String()+" is above "+limit.of+", "+limit.max.String(), "lower it, or raise max")
			return false
		}
	}
	before := m.promised[link.Name]
	m.promised[link.Name] += min
	for _, bound := range []struct {
		rate Rate
		of   string
	}{
		{link.Rate, "its rate"}, {link.Egress.Max, "its own limit"},
	} {
		if bound.rate >= MinRate && before <= bound.rate && before+min > bound.rate {
			m.report(raw.min.span, "the mins of link "+quote(link.Name)+" come to "+(before+min).String()+" with this one: more than "+
				bound.of+", "+bound.rate.String(), "lower one of them")
			return false
		}
	}
	return true
}
