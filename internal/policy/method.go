package policy

import "strconv"

// A Method names the rung of the ladder of limits that shall hold a limit: of what a
// workload sends or receives, or of a link itself.
type Method string

// The methods, best first behind Auto, which takes the first that the kernel and the
// link allow.
const (
	MethodAuto   Method = ""       // in a file "auto", or left out
	MethodPace   Method = "pace"   // TCP of this host is paced, a bucket holds the rest
	MethodEDT    Method = "edt"    // of a workload: what it sends waits in the link's fq for its time; of what it receives, what it answers
	MethodHTB    Method = "htb"    // of a workload: a class of the link's own HTB; of what it receives, what it acknowledges waits in one of ours
	MethodPolice Method = "police" // of a link: a filter of tc drops what is above
	MethodIfb    Method = "ifb"    // of what arrives by a link: it waits in the queue of a device of kind ifb
)

// MinPoliceBurst is the least that police may let through at once: two packets of the
// size that TCP hands to a device, which a smaller bucket would drop for good.
const MinPoliceBurst Size = 128 << 10

// String is the method as a file has it.
func (m Method) String() string {
	if m == MethodAuto {
		return "auto"
	}
	return string(m)
}

// sendMethods returns what the method of a limit can be of what a workload sends.
func sendMethods() []Method { return []Method{MethodAuto, MethodPace, MethodEDT, MethodHTB} }

// receiveMethods returns what the method of a limit can be of what a workload receives.
func receiveMethods() []Method { return []Method{MethodAuto, MethodPace, MethodEDT, MethodHTB} }

// linkMethods returns what the method of a link's own limit can be in one direction.
func linkMethods(arrives bool) []Method {
	methods := []Method{MethodAuto, MethodPace, MethodPolice}
	if arrives {
		methods = append(methods, MethodIfb)
	}
	return methods
}

// parseMethod reads the name of one of some methods. The error is a *ValueError.
func parseMethod(s string, methods []Method) (Method, error) {
	var names []string
	for _, known := range methods {
		if known.String() == s {
			return known, nil
		}
		names = append(names, known.String())
	}
	switch Method(s) {
	case MethodEDT:
		return MethodAuto, &ValueError{"method edt holds what a workload sends or receives, and no limit of a link itself", possible(names)}
	case MethodHTB:
		return MethodAuto, &ValueError{"method htb holds what a workload sends or receives, and no limit of a link itself", possible(names)}
	case MethodPolice:
		return MethodAuto, &ValueError{"method police holds a limit of a link itself, and none of a workload", possible(names)}
	case MethodIfb:
		return MethodAuto, &ValueError{"method ifb holds what arrives by a link, and nothing that is sent", possible(names)}
	}
	return MethodAuto, &ValueError{"method " + quote(s) + " is not known", DidYouMean(s, names, possible(names))}
}

// sendMethod reads how a limit of what a workload sends shall be held. links are those
// that it is of; onLinks is false where they are not known, or wrong.
func (m *meaning) sendMethod(raw rawBandwidth, links []string, onLinks bool) Method {
	method := m.workloadMethod(raw, sendMethods())
	if method == MethodEDT && onLinks {
		m.keepTimes(raw, links)
	}
	if method == MethodHTB && onLinks {
		m.oneLine(raw, links)
	}
	return method
}

// receiveMethod reads how a limit of what a workload receives shall be held.
func (m *meaning) receiveMethod(raw rawBandwidth) Method {
	method := m.workloadMethod(raw, receiveMethods())
	switch {
	case method != MethodEDT && method != MethodHTB || m.linksOpen:
	case len(m.declared) == 0:
		m.noLinks(raw.method.span, "this method has no link whose answers could wait", "")
	case method == MethodEDT:
		m.keepTimes(raw, m.declared)
	}
	return method
}

// workloadMethod reads how a limit of a workload shall be held, one of some methods.
func (m *meaning) workloadMethod(raw rawBandwidth, methods []Method) Method {
	method := m.method(raw, methods)
	if (method == MethodEDT || method == MethodHTB) && raw.burst.given() {
		m.report(raw.method.span, "method "+string(method)+" lets no burst through: only the buckets of method pace have one", "leave burst out, or method")
	}
	return method
}

// linkMethod reads how a limit of a link itself shall be held, of what arrives or of what
// leaves.
func (m *meaning) linkMethod(raw rawBandwidth, burst Size, arrives bool) Method {
	method := m.method(raw, linkMethods(arrives))
	if method == MethodIfb && raw.burst.given() {
		m.report(raw.method.span, "method ifb lets no burst through: what is above max waits", "leave burst out, or method")
	}
	if method == MethodPolice && burst != 0 && burst < MinPoliceBurst {
		m.report(raw.burst.span, "method police would drop every packet of 64KiB, which is how TCP hands them to a device: at least "+
			MinPoliceBurst.String()+" must fit into burst", "raise it, or leave it out")
	}
	return method
}

// method reads how a limit shall be held.
func (m *meaning) method(raw rawBandwidth, methods []Method) Method {
	if !raw.method.given() {
		return MethodAuto
	}
	if !raw.keys.has("max") {
		if raw.keys.hasAny([]string{"min", "links", "pps"}) { // else it is reported that there is nothing
			m.report(raw.method.span, "method has no max that it could hold", "give max beside it, or leave method out")
		}
		return MethodAuto
	}
	method, err := parseMethod(raw.method.text, methods)
	if err == nil && method != MethodAuto && method != MethodPace && raw.pps.given() {
		err = &ValueError{"method " + string(method) + " counts no packets: only method pace holds a pps", "leave pps out, or method"}
	}
	m.refuse(raw.method.span, err)
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

// keepTimes reports links that keep no packet until its time of departure.
func (m *meaning) keepTimes(raw rawBandwidth, links []string) {
	for _, name := range links {
		link := m.links[name]
		if link == nil || link.Scheduler == "" {
			continue // not declared, or wrong, as was reported
		}
		switch s := link.Scheduler; s {
		case Auto, Prio, ETS, FQ:
		default:
			m.report(raw.method.span, "scheduler "+string(s)+" of link "+quote(name)+" keeps no packet until its time of departure",
				"scheduler: prio, ets or fq does, over fq, and auto takes one; or leave method out")
			return
		}
	}
}
