package policy

func (m *meaning) link(raw rawLink) Link {
	link := Link{Name: raw.name.text, Scheduler: Auto, Span: raw.name.span}
	m.refuse(raw.name.span, CheckLinkName(raw.name.text))
	if raw.rate.given() {
		link.RateSpan = raw.rate.span
		rate, err := ParseRate(raw.rate.text)
		m.refuse(raw.rate.span, err)
		if err == nil && rate < 8 {
			// HTB and TBF count bytes: what is below one of them is 0, and 0 is an error.
			m.report(raw.rate.span, "rate "+rate.String()+" lets nothing through", "leave rate out for the device's own speed")
		}
		link.Rate = rate
	}
	if raw.scheduler.given() {
		link.SchedulerSpan = raw.scheduler.span
		scheduler, err := ParseScheduler(raw.scheduler.text)
		m.refuse(raw.scheduler.span, err)
		link.Scheduler = scheduler
	}
	if s := raw.adopt; s.given() {
		switch {
		case s.kind == plain && (s.text == "true" || s.text == "false"):
			link.Adopt = s.text == "true"
		default:
			help := "true or false"
			switch s.text {
			case "yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE", "true", "y", "1":
				help = "write adopt: true"
			case "no", "No", "NO", "off", "Off", "OFF", "False", "FALSE", "false", "n", "0":
				help = "write adopt: false"
			}
			m.report(s.span, "adopt "+quote(s.text)+" is neither true nor false", help)
		}
	}
	return link
}

// Schedulers returns the names that a link's scheduler can have, best first.
func Schedulers() []Scheduler { return []Scheduler{Auto, MQPrio, Prio, ETS, HTB, FQ, None} }

// ParseScheduler reads the name of a scheduler. The error is a *ValueError.
func ParseScheduler(s string) (Scheduler, error) {
	names := make([]string, 0, 7)
	for _, known := range Schedulers() {
		if string(known) == s {
			return known, nil
		}
		names = append(names, string(known))
	}
	return "", &ValueError{"scheduler " + quote(s) + " is not known", didYouMean(s, names)}
}
