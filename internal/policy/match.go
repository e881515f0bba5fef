package policy

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxPID is the kernel's PID_MAX_LIMIT on 64-bit machines.
const maxPID = 1 << 22

// selector reads one match item. ok is false if it cannot be one of anything.
func (m *meaning) selector(raw rawSelector) (s Selector, ok bool) {
	if !raw.keys.record || len(raw.fields) == 0 {
		if raw.keys.record && !raw.broken {
			m.report(raw.span, "this match item is empty", "name one of pid, cgroup, unit, user, exe, or a flow by port, protocol, cidr, dscp")
		}
		return Selector{}, false
	}
	process, flow := 0, 0
	for _, field := range raw.fields {
		if slices.Contains(processKeys, field.name) {
			process++
		} else {
			flow++
		}
	}
	before := len(m.errs)
	if process > 1 || process > 0 && flow > 0 {
		names := make([]string, len(raw.fields))
		for i, field := range raw.fields {
			names[i] = field.name
		}
		m.report(raw.span, "one match item cannot combine "+strings.Join(names, " and "),
			"name one of pid, cgroup, unit, user, exe, or a flow by any of port, protocol, cidr, dscp; two items match either")
	}
	s = Selector{Kind: KindFlow, Span: raw.span, Flow: AnyFlow()}
	m.process(raw, &s)
	if flow > 0 {
		s.Flow = m.flow(raw)
	}
	if s.Kind != KindFlow {
		s.Flow = Flow{}
	}
	return s, len(m.errs) == before && !raw.broken
}

// process reads the keys that select by what sends.
func (m *meaning) process(raw rawSelector, s *Selector) {
	var err error
	if v := raw.get("pid"); m.unquoted(v, "pid") {
		s.Kind, s.Span = KindPID, v.span
		s.PID, err = ParsePID(v.text)
		m.refuse(v.span, err)
	}
	if v := raw.get("cgroup"); v.given() {
		s.Kind, s.Span = KindCgroup, v.span
		s.Cgroup, err = ParseCgroup(v.text)
		m.refuse(v.span, err)
	}
	if v := raw.get("unit"); v.given() {
		s.Kind, s.Span = KindUnit, v.span
		s.Cgroup, err = ParseUnit(v.text)
		m.refuse(v.span, err)
	}
	if v := raw.get("user"); v.given() {
		s.Kind, s.Span, s.User = KindUser, v.span, v.text
		m.refuse(v.span, checkUser(v.text))
	}
	if v := raw.get("exe"); v.given() {
		s.Kind, s.Span, s.Exe = KindExe, v.span, v.text
		m.refuse(v.span, checkExe(v.text))
	}
}

// ParsePID reads a process id. The error is a *ValueError.
func ParsePID(s string) (uint32, error) {
	if !isNumber(s) {
		return 0, &ValueError{"pid " + quote(s) + " is not a number", "select a program by exe, unit or cgroup"}
	}
	if s == "0" {
		return 0, &ValueError{"pid 0 is no process", "1 to " + strconv.Itoa(maxPID)}
	}
	n, err := number("pid", s, 1, maxPID)
	return uint32(n), err
}

// flow reads the keys that select by what is in a packet's headers.
func (m *meaning) flow(raw rawSelector) Flow {
	flow := AnyFlow()
	var err error
	if v := raw.get("protocol"); m.unquoted(v, "protocol") {
		flow.Protocol, err = ParseProtocol(v.text)
		m.refuse(v.span, err)
	}
	if v := raw.get("cidr"); v.given() {
		flow.Prefix, err = parsePrefix("cidr", v.text)
		m.refuse(v.span, err)
	}
	if v := raw.get("dscp"); m.unquoted(v, "dscp") {
		flow.DSCP, err = ParseDSCP(v.text)
		m.refuse(v.span, err)
	}
	if ports := raw.portList(); len(ports) > 0 {
		flow.Ports = m.ports(ports)
		if p := flow.Protocol; p >= 0 && !HasPorts(p) {
			m.report(ports[0].span, "protocol "+ProtocolName(p)+" has no ports, so this matches nothing",
				"leave port out, or use tcp, udp, sctp, dccp or udplite")
		}
	}
	if f, v := flow, raw.get("cidr"); f.Prefix != (netip.Prefix{}) {
		switch v4 := f.Prefix.Addr().Is4(); {
		case v4 && f.Protocol == 58:
			m.report(v.span, "protocol icmpv6 is never in IPv4 packets, so this matches nothing", "use protocol: icmp")
		case !v4 && f.Protocol == 1:
			m.report(v.span, "protocol icmp is never in IPv6 packets, so this matches nothing", "use protocol: icmpv6")
		case !v4 && f.Protocol == 2:
			m.report(v.span, "protocol igmp is never in IPv6 packets, so this matches nothing", "in IPv6 its work is done by icmpv6")
		}
	}
	return flow
}

// ports reads the ports of one item; more than maxPorts is an error, and so is
// one that stands there twice.
func (m *meaning) ports(scalars []scalar) []PortRange {
	written := make([]portsAt, 0, len(scalars))
	count := 0
	for _, s := range scalars {
		r, err := parsePorts(s.text)
		m.refuse(s.span, err)
		if err == nil {
			written = append(written, portsAt{r, s.span})
			count += r.Count()
		}
	}
	if count > maxPorts {
		m.report(scalars[0].span, strconv.Itoa(count)+" ports are more than the "+strconv.Itoa(maxPorts)+" that one item can name",
			"match wide ranges by protocol or cidr instead")
		return nil
	}
	ranges, twice := sortPorts(written)
	if twice != nil {
		m.report(twice.span, "port "+twice.String()+" is listed twice", "")
	}
	return ranges
}

// portList is the ports as written, one or a list of them.
func (s rawSelector) portList() []scalar {
	var given []scalar
	if one := s.get("port"); one.given() {
		return []scalar{one}
	}
	for _, port := range s.ports {
		if port.given() {
			given = append(given, port)
		}
	}
	return given
}
