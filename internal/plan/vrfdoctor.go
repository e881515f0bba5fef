package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// UnreachableMetric is the metric of the route that ends a VRF's lookups: after all others.
const UnreachableMetric = 4278198272

// VRFDoctor says what is wrong with the VRFs of a network namespace, or with the one of that
// name: three findings about all of them, and four about each. Lookups are by the
// name of the VRF; one without is not looked at.
func VRFDoctor(f VRFFacts, lookups map[string]VRFLookups, name string) []Finding {
	findings := []Finding{vrfTables(f)}
	if len(f.VRFs) == 0 {
		return findings
	}
	findings = append(findings, vrfRules(f.Rules), vrfAccept(f.Accept))
	for _, v := range f.VRFs {
		if name != "" && v.Name != name {
			continue
		}
		findings = append(findings, vrfLinks(v), vrfRoutes(v), vrfLoopback(v))
		if l, ok := lookups[v.Name]; ok {
			findings = append(findings, vrfDNS(v, l, f.Accept))
		}
	}
	return findings
}

func vrfTables(f VRFFacts) Finding {
	owner := map[uint32]string{}
	for _, v := range f.VRFs {
		if v.Table == 0 || v.Table >= tableDefault && v.Table <= tableLocal {
			return Finding{
				ID: "tables", State: FindingFail, Text: fmt.Sprintf("%s has table %d, which is the kernel's own", v.Name, v.Table),
				Stops: v.Name + " is not apart from what is in no VRF",
				Mend:  fmt.Sprintf("ip link del %s && ip link add %s type vrf table 1000", v.Name, v.Name),
			}
		}
		if other := owner[v.Table]; other != "" {
			return Finding{
				ID: "tables", State: FindingFail, Text: fmt.Sprintf("%s and %s have one table, %d", other, v.Name, v.Table),
				Stops: "each of them uses the other's routes",
				Mend:  fmt.Sprintf("ip link del %s && ip link add %s type vrf table %d", v.Name, v.Name, freeTable(f)),
			}
		}
		owner[v.Table] = v.Name
	}
	switch len(f.VRFs) {
	case 0:
		return Finding{ID: "tables", State: FindingOK, Text: "kernel has VRFs, and there is none here"}
	case 1:
		return Finding{ID: "tables", State: FindingOK, Text: fmt.Sprintf("%s has table %d", f.VRFs[0].Name, f.VRFs[0].Table)}
	}
	return Finding{ID: "tables", State: FindingOK, Text: strings.Join(f.Names(), ", ") + " have a table each"}
}

func freeTable(f VRFFacts) uint32 {
	table := uint32(1000)
	for slices.ContainsFunc(f.VRFs, func(v VRFDevice) bool { return v.Table == table }) {
		table++
	}
	return table
}

// vrfRules holds the order of rules: what is in a VRF has to ask its own table first.
func vrfRules(rules []VRFRule) Finding {
	const stops = "an address of this host outside of a VRF, 127.0.0.1 as well, is meant where the same one is meant inside"
	var late []string
	for _, family := range []int{4, 6} {
		ip := fmt.Sprintf("ip -%d rule", family)
		l3mdev, local, any := -1, -1, false
		for i, r := range rules {
			if r.Family != family {
				continue
			}
			any = true
			if r.L3mdev && l3mdev < 0 {
				l3mdev = i
			}
			if r.Table == tableLocal && r.All && local < 0 {
				local = i
			}
		}
		switch {
		case !any: // a kernel without IPv6
		case l3mdev < 0:
			return Finding{
				ID: "rules", State: FindingFail, Text: fmt.Sprintf("no rule of IPv%d leads to the tables of VRFs", family),
				Stops: "nothing in a VRF finds its routes", Mend: ip + " add pref 1000 l3mdev protocol kernel",
			}
		case local >= 0 && local < l3mdev:
			late = append(late, fmt.Sprintf("%s add pref 32765 table local && %s del pref %d", ip, ip, rules[local].Preference))
		}
	}
	if len(late) > 0 {
		return Finding{
			ID: "rules", State: FindingWarn, Text: "the rule local comes before l3mdev", Stops: stops, Mend: strings.Join(late, " && "),
		}
	}
	return Finding{ID: "rules", State: FindingOK, Text: "what is in a VRF asks its own table first (l3mdev before local)"}
}

func vrfAccept(accept map[string]int) Finding {
	var off []string
	for _, name := range []string{"tcp_l3mdev_accept", "udp_l3mdev_accept"} {
		if value, ok := accept[name]; ok && value == 0 {
			off = append(off, "net.ipv4."+name)
		}
	}
	if len(off) == 0 {
		return Finding{ID: "accept", State: FindingOK, Text: "services that are in no VRF answer in each of them"}
	}
	return Finding{
		ID: "accept", State: FindingWarn, Text: "services that are in no VRF do not answer in one: 0 is " + strings.Join(off, " and "),
		Stops: "sshd and others, unless they run in the VRF (weir vrf service)", Mend: "sysctl -w " + strings.Join(off, "=1 ") + "=1",
	}
}

func vrfLinks(v VRFDevice) Finding {
	id := v.Name + "/links"
	var names []string
	for _, m := range v.Members {
		names = append(names, m.Name)
		if v.Up && !m.Up {
			return Finding{ID: id, State: FindingWarn, Text: m.Name + " is down", Stops: "its routes", Mend: "ip link set " + m.Name + " up"}
		}
	}
	switch {
	case !v.Up:
		return Finding{ID: id, State: FindingFail, Text: v.Name + " is down", Stops: "all that is in it", Mend: "ip link set " + v.Name + " up"}
	case len(names) == 0:
		return Finding{
			ID: id, State: FindingWarn, Text: "no device is in it", Stops: "nothing leaves and nothing arrives", Mend: "weir apply FILE, with vrfs: {" + v.Name + ": {links: […]}}",
		}
	}
	return Finding{ID: id, State: FindingOK, Text: "up, with " + strings.Join(names, ", ")}
}

func vrfRoutes(v VRFDevice) Finding {
	id := v.Name + "/routes"
	var ways, open []string
	for _, family := range []int{4, 6} {
		for _, r := range v.DefaultRoutes(family) {
			ways = append(ways, strings.TrimPrefix(r.String(), "default "))
		}
		if !slices.ContainsFunc(v.Routes, func(r VRFRoute) bool {
			return r.Default() && r.Refuses() && r.Destination.Addr().Is4() == (family == 4)
		}) {
			open = append(open, fmt.Sprintf("ip -%d route add unreachable default metric %d vrf %s", family, uint32(UnreachableMetric), v.Name))
		}
	}
	switch {
	case len(ways) == 0 && len(v.Members) > 0:
		return Finding{
			ID: id, State: FindingWarn, Text: "no default route", Stops: "what is beyond the networks of its own links",
			Mend: "ip route add default via GATEWAY vrf " + v.Name,
		}
	case len(open) > 0:
		return Finding{
			ID: id, State: FindingWarn, Text: "no unreachable route ends its lookups: what has no route here is looked up in the main table",
			Stops: "nothing yet; without a default route packets leave outside of " + v.Name, Mend: strings.Join(open, " && "),
		}
	}
	return Finding{ID: id, State: FindingOK, Text: "by default " + strings.Join(ways, ", ") + ", else unreachable"}
}

var (
	loopback4 = netip.MustParsePrefix("127.0.0.1/8")
	loopback6 = netip.MustParsePrefix("::1/128")
)

func vrfLoopback(v VRFDevice) Finding {
	id := v.Name + "/loopback"
	var lacks, mend []string
	for _, p := range []netip.Prefix{loopback4, loopback6} {
		if !v.has(p.Addr()) {
			lacks = append(lacks, p.Addr().String())
			mend = append(mend, fmt.Sprintf("ip addr add %s dev %s", p, v.Name))
		}
	}
	if len(lacks) == 0 {
		return Finding{ID: id, State: FindingOK, Text: "127.0.0.1 and ::1 are " + v.Name + "'s own"}
	}
	return Finding{
		ID: id, State: FindingWarn, Text: v.Name + " has no " + strings.Join(lacks, " and no "),
		Stops: "programs there that talk to each other by it", Mend: strings.Join(mend, " && "),
	}
}

// has reports whether the VRF's own device has an address. Where it has one of 127.0.0.0/8
// it has them all.
func (v VRFDevice) has(a netip.Addr) bool {
	return slices.ContainsFunc(v.Addresses, func(p netip.Prefix) bool {
		return p.Addr() == a || a.Is4() && a.IsLoopback() && p.Contains(a)
	})
}

// vrfDNS follows a lookup from resolv.conf to who should answer it.
func vrfDNS(v VRFDevice, l VRFLookups, accept map[string]int) Finding {
	found := Finding{ID: v.Name + "/dns", Stops: "names are not resolved in " + v.Name + " (apt, docker pull, ssh to a name)"}
	fix := "weir vrf doctor " + v.Name + " --fix"
	answering := slices.IndexFunc(l.Servers, func(s VRFServer) bool { return s.Answers })
	who, others := "what runs there", ""
	if l.Own {
		who = "what weir vrf exec runs there"
		others = "; what vrf: of a policy binds, or weir set, goes on asking as outside: weir vrf service gives a unit this file"
	}
	switch {
	case answering >= 0 && l.Varlink && !l.Own:
		found.State, found.Mend = FindingWarn, fix
		found.Text = fmt.Sprintf("%s answers, but nsswitch.conf has systemd-resolved asked first, whose queries leave outside of %s", l.Servers[answering].Address, v.Name)
	case answering == 0:
		return Finding{ID: found.ID, State: FindingOK, Text: fmt.Sprintf("%s asks %s (%s), which answers%s", who, l.Servers[0].Address, l.File, others)}
	case answering > 0:
		found.State, found.Stops = FindingWarn, "each lookup waits for some seconds"
		found.Text = fmt.Sprintf("%s: %s; %s answers", l.Servers[0].Address, l.Servers[0].why(v, accept), l.Servers[answering].Address)
		found.Mend = fix
	case len(l.Servers) == 0:
		found.State, found.Text, found.Mend = FindingFail, l.File+" names no server", fix+" --dns ADDRESS"
	default:
		first := l.Servers[0]
		found.State, found.Mend = FindingFail, fix
		found.Text = fmt.Sprintf("%s: %s", first.Address, first.why(v, accept))
		if l.Own || !first.Address.IsLoopback() {
			found.Mend += " --dns ADDRESS"
		}
	}
	return found
}

// why says in one sentence why a server does not answer.
func (s VRFServer) why(v VRFDevice, accept map[string]int) string {
	if !s.Address.IsLoopback() {
		return s.Why
	}
	name := s.Listener
	if name == "systemd-resolve" { // as far as the kernel keeps a name
		name = "systemd-resolved"
	}
	switch {
	case s.Listener != "" && s.Device != "" && s.Device != v.Name:
		return fmt.Sprintf("%s is bound to %s, which %s does not reach, and its own queries leave outside of %s", name, s.Device, v.Name, v.Name)
	case s.Listener != "" && !v.has(s.Address):
		return fmt.Sprintf("it is not an address of %s, so the query leaves by the default route, and %s outside of it hears nothing", v.Name, name)
	case s.Listener != "" && accept["udp_l3mdev_accept"] == 0 && s.Device == "":
		return fmt.Sprintf("%s is in no VRF, and udp_l3mdev_accept is 0", name)
	case s.Listener == "":
		return "nothing listens there, neither in " + v.Name + " nor outside"
	}
	return s.Why
}
