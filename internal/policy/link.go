package policy

import "strings"

func (m *meaning) link(raw rawLink) Link {
	link := Link{Name: raw.name.text, Scheduler: Auto, Span: raw.name.span}
	m.refuse(raw.name.span, CheckLinkName(raw.name.text))
	if raw.rate.given() {
		rate, err := ParseRate(raw.rate.text)
		m.refuse(raw.rate.span, err)
		if err == nil && rate < MinRate {
			m.report(raw.rate.span, "rate "+rate.String()+" is below "+MinRate.String()+", the least that a link can be held to",
				"raise it, or leave rate out for the device's own speed")
		}
		link.Rate = rate
	}
	if raw.scheduler.given() {
		link.SchedulerSpan = raw.scheduler.span
		scheduler, err := parseScheduler(raw.scheduler.text)
		m.refuse(raw.scheduler.span, err)
		link.Scheduler = scheduler
	}
	if s := raw.adopt; s.given() {
		link.Adopt = m.boolean(s, "adopt")
	}
	link.Egress, link.Ingress = m.bandwidth(raw.egress, &link, false), m.bandwidth(raw.ingress, &link, true)
	m.reachable(raw.egress, link.Egress.Max, &link)
	return link
}

// boolean reads true or false, the only spellings that all readers of YAML take
// for the same.
func (m *meaning) boolean(s scalar, what string) bool {
	if s.kind == plain && (s.text == "true" || s.text == "false") {
		return s.text == "true"
	}
	help := "true or false"
	switch strings.ToLower(s.text) {
	case "yes", "on", "true", "y", "1":
		help = "write " + what + ": true"
	case "no", "off", "false", "n", "0":
		help = "write " + what + ": false"
	}
	m.report(s.span, what+" "+quote(s.text)+" is neither true nor false", help)
	return false
}

// schedulers returns the names that a link's scheduler can have, best first.
func schedulers() []Scheduler { return []Scheduler{Auto, MQPrio, Prio, ETS, HTB, FQ, None} }

// parseScheduler reads the name of a scheduler. The error is a *ValueError.
func parseScheduler(s string) (Scheduler, error) {
	names := make([]string, 0, 7)
	for _, known := range schedulers() {
		if string(known) == s {
			return known, nil
		}
		names = append(names, string(known))
	}
	return "", &ValueError{"scheduler " + quote(s) + " is not known", DidYouMean(s, names, possible(names))}
}

// CheckLinkName refuses what the kernel would not take as the name of a network
// device. The error is a *ValueError.
func CheckLinkName(name string) error {
	fail := func(message string) error { return &ValueError{"interface " + quote(name) + " " + message, ""} }
	switch {
	case name == "" || len(name) > 15:
		return fail("must have 1 to 15 bytes")
	case name == "." || name == "..":
		return fail("is not a name")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '/' || r == ':' || r == 0x7f }):
		return fail("has a space, slash, colon or control character")
	case strings.Contains(name, "\xa0"):
		// dev_valid_name asks isspace() byte by byte, in Latin-1: à is refused, á is not.
		return fail("has a character that the kernel takes for a space")
	case name == "default" || name == "all":
		// net/ipv4/devinet.c, sysctl_dev_name_is_allowed: they are directories of
		// net.ipv4.conf, and "default" is a key of a priority here.
		return fail("is a name that the kernel keeps for itself")
	}
	return nil
}
