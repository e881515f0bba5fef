package policy

import "strconv"

// A Method names the rung of the ladder of limits that shall hold a limit of what a
// workload sends.
type Method string

// The methods, best first behind Auto, which takes the first that the kernel and the
// link allow.
const (
	MethodAuto Method = ""     // in a file "auto", or left out
	MethodPace Method = "pace" // TCP of this host is paced, a bucket holds the rest
	MethodHTB  Method = "htb"  // a class of the link's own HTB
)

// String is the method as a file has it.
func (m Method) String() string {
	if m == MethodAuto {
		return "auto"
	}
	return string(m)
}

// methods returns what a method can be.
func methods() []Method { return []Method{MethodAuto, MethodPace, MethodHTB} }

// parseMethod reads the name of a method. The error is a *ValueError.
func parseMethod(s string) (Method, error) {
	var names []string
	for _, known := range methods() {
		if known.String() == s {
			return known, nil
		}
		names = append(names, known.String())
	}
	return MethodAuto, &ValueError{"method " + quote(s) + " is not known", DidYouMean(s, names, possible(names))}
}

// method reads how a limit shall be held. links are those that it is of; onLinks is
// false where they are not known, or wrong.
func (m *meaning) method(raw rawBandwidth, links []string, onLinks bool) Method {
	if !raw.method.given() {
		return MethodAuto
	}
	if !raw.keys.has("max") {
		if raw.keys.has("min") || raw.keys.has("links") { // else it is reported that there is nothing
			m.report(raw.method.span, "method has no max that it could hold", "give max beside it, or leave method out")
		}
		return MethodAuto
	}
	method, err := parseMethod(raw.method.text)
	if err == nil && method == MethodHTB && raw.burst.given() {
		err = &ValueError{"method htb lets no burst through: only the buckets of method pace have one", "leave burst out, or method"}
	}
	if err == nil && method == MethodHTB && raw.pps.given() {
		err = &ValueError{"method htb counts no packets: only method pace holds a pps", "leave pps out, or method"}
	}
	m.refuse(raw.method.span, err)
	if method == MethodHTB && onLinks {
		m.oneLine(raw, links)
	}
	return method
}

// oneLine reports a limit that no class of a link's own HTB can hold.
func (m *meaning) oneLine(raw rawBandwidth, links []string) {
	if len(links) > 1 {
		m.report(raw.method.span, "method htb holds one link each, and this max is of "+strconv.Itoa(len(links))+" together",
			"name the links: links: {"+quoteless(links[0])+": {max: "+clip(raw.max.text)+", method: htb}}")
		return
	}
	link := m.links[links[0]]
	if link == nil {
		return // not declared, as was reported
	}
	if s := link.Scheduler; s != Auto && s != HTB && s != "" {
		m.report(raw.method.span, "scheduler "+string(s)+" of link "+quote(link.Name)+" holds nobody to a rate",
			"scheduler: htb does, and auto takes it; or leave method out")
	}
}
