package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// healthyVRF is a VRF with nothing wrong.
func healthyVRF() (VRFFacts, map[string]VRFLookups) {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	route := func(destination, kind, via string) VRFRoute {
		r := VRFRoute{Destination: prefix(destination), Kind: kind}
		if via != "" {
			r.Gateways, r.Devices = []netip.Addr{addr(via)}, []string{"eth1"}
		}
		return r
	}
	f := VRFFacts{
		VRFs: []VRFDevice{{
			Name: "mgmt", Index: 5, Table: 1000, Up: true, Addresses: []netip.Prefix{loopback4, loopback6},
			Members: []VRFMember{{Name: "eth1", Index: 3, Up: true}},
			Routes:  []VRFRoute{route("0.0.0.0/0", "unicast", "10.7.1.2"), route("0.0.0.0/0", "unreachable", ""), route("::/0", "unreachable", "")},
		}},
		Accept: map[string]int{"tcp_l3mdev_accept": 1, "udp_l3mdev_accept": 1},
	}
	for _, family := range []int{4, 6} {
		f.Rules = append(f.Rules,
			VRFRule{Family: family, Preference: 1000, L3mdev: true, All: true}, VRFRule{Family: family, Preference: 32765, Table: tableLocal, All: true},
			VRFRule{Family: family, Preference: 32766, Table: tableMain, All: true})
	}
	l := VRFLookups{File: "/etc/resolv.conf", Servers: []VRFServer{{Address: addr("10.7.1.2"), Answers: true}}}
	return f, map[string]VRFLookups{"mgmt": l}
}

func TestVRFDoctorHealthy(t *testing.T) {
	f, l := healthyVRF()
	findings := VRFDoctor(f, l, "")
	for _, x := range findings {
		if x.State != FindingOK || x.Stops != "" || x.Mend != "" {
			t.Errorf("%+v", x)
		}
	}
	if len(findings) != 7 {
		t.Errorf("%d findings", len(findings))
	}
}

func TestVRFDoctor(t *testing.T) {
	stub := netip.MustParseAddr("127.0.0.53")
	server := func(l *VRFLookups, s VRFServer) { l.Servers = []VRFServer{s} }
	for name, tt := range map[string]struct {
		change func(f *VRFFacts, v *VRFDevice, l *VRFLookups)
		want   string // the one finding that is not ok
	}{
		"no rule": {func(f *VRFFacts, _ *VRFDevice, _ *VRFLookups) { f.Rules = f.Rules[1:] },
			"fail rules: no rule of IPv4 leads to the tables of VRFs | ip -4 rule add pref 1000 l3mdev protocol kernel"},
		"local first": {func(f *VRFFacts, _ *VRFDevice, _ *VRFLookups) {
			f.Rules[3], f.Rules[4] = f.Rules[4], f.Rules[3]
			f.Rules[3].Preference = 0
		},
			"warn rules: the rule local comes before l3mdev | ip -6 rule add pref 32765 table local && ip -6 rule del pref 0"},
		"no IPv6": {func(f *VRFFacts, _ *VRFDevice, _ *VRFLookups) { f.Rules = f.Rules[:3] }, ""},
		"accept": {func(f *VRFFacts, _ *VRFDevice, _ *VRFLookups) { f.Accept["udp_l3mdev_accept"] = 0 },
			"warn accept: services that are in no VRF do not answer in one: 0 is net.ipv4.udp_l3mdev_accept | sysctl -w net.ipv4.udp_l3mdev_accept=1"},
		"one table": {func(f *VRFFacts, v *VRFDevice, _ *VRFLookups) { f.VRFs = append(f.VRFs, *v); f.VRFs[1].Name = "red" },
			"fail tables: mgmt and red have one table, 1000 | ip link del red && ip link add red type vrf table 1001"},
		"main": {func(_ *VRFFacts, v *VRFDevice, _ *VRFLookups) { v.Table = 254 },
			"fail tables: mgmt has table 254, which is the kernel's own | ip link del mgmt && ip link add mgmt type vrf table 1000"},
		"down": {func(_ *VRFFacts, v *VRFDevice, _ *VRFLookups) { v.Up = false }, "fail mgmt/links: mgmt is down | ip link set mgmt up"},
		"no way": {func(_ *VRFFacts, v *VRFDevice, _ *VRFLookups) { v.Routes = v.Routes[1:] },
			"warn mgmt/routes: no default route | ip route add default via GATEWAY vrf mgmt"},
		"no end": {func(_ *VRFFacts, v *VRFDevice, _ *VRFLookups) { v.Routes = v.Routes[:2] },
			"warn mgmt/routes: no unreachable route ends its lookups: what has no route here is looked up in the main table | ip -6 route add unreachable default metric 4278198272 vrf mgmt"},
		"no loopback": {func(_ *VRFFacts, v *VRFDevice, _ *VRFLookups) { v.Addresses = v.Addresses[:1] },
			"warn mgmt/loopback: mgmt has no ::1 | ip addr add ::1/128 dev mgmt"},
		"silent": {func(_ *VRFFacts, _ *VRFDevice, l *VRFLookups) {
			l.Servers[0].Answers, l.Servers[0].Why = false, "no answer within 2s"
		},
			"fail mgmt/dns: 10.7.1.2: no answer within 2s | weir vrf doctor mgmt --fix --dns ADDRESS"},
		"resolved": {func(_ *VRFFacts, _ *VRFDevice, l *VRFLookups) {
			server(l, VRFServer{Address: stub, Listener: "systemd-resolve", Device: "lo"})
		}, "fail mgmt/dns: 127.0.0.53: systemd-resolved is bound to lo, which mgmt does not reach, and its own queries leave outside of mgmt | weir vrf doctor mgmt --fix"},
		"dnsmasq": {func(f *VRFFacts, v *VRFDevice, l *VRFLookups) {
			server(l, VRFServer{Address: stub, Listener: "dnsmasq"})
			v.Addresses = v.Addresses[1:]
		}, "fail mgmt/dns: 127.0.0.53: it is not an address of mgmt, so the query leaves by the default route, and dnsmasq outside of it hears nothing | weir vrf doctor mgmt --fix"},
		"nobody": {func(_ *VRFFacts, _ *VRFDevice, l *VRFLookups) { server(l, VRFServer{Address: stub}) },
			"fail mgmt/dns: 127.0.0.53: nothing listens there, neither in mgmt nor outside | weir vrf doctor mgmt --fix"},
		"none": {func(_ *VRFFacts, _ *VRFDevice, l *VRFLookups) { l.Servers = nil }, "fail mgmt/dns: /etc/resolv.conf names no server | weir vrf doctor mgmt --fix --dns ADDRESS"},
		"second": {func(_ *VRFFacts, _ *VRFDevice, l *VRFLookups) {
			l.Servers = append([]VRFServer{{Address: stub}}, l.Servers...)
		}, "warn mgmt/dns: 127.0.0.53: nothing listens there, neither in mgmt nor outside; 10.7.1.2 answers | weir vrf doctor mgmt --fix"},
		"varlink": {func(_ *VRFFacts, _ *VRFDevice, l *VRFLookups) { l.Varlink = true },
			"warn mgmt/dns: 10.7.1.2 answers, but nsswitch.conf has systemd-resolved asked first, whose queries leave outside of mgmt | weir vrf doctor mgmt --fix"},
		"own": {func(_ *VRFFacts, _ *VRFDevice, l *VRFLookups) { l.Varlink, l.Own = true, true }, ""},
	} {
		f, lookups := healthyVRF()
		l := lookups["mgmt"]
		tt.change(&f, &f.VRFs[0], &l)
		lookups["mgmt"] = l
		var got []string
		for _, x := range VRFDoctor(f, lookups, "mgmt") {
			if x.State != FindingOK && !(name == "dnsmasq" && x.ID == "mgmt/loopback") {
				got = append(got, fmt.Sprintf("%s %s: %s | %s", x.State, x.ID, x.Text, x.Mend))
			}
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n"), tt.want)
		}
	}
}

func TestResolvConf(t *testing.T) {
	servers, rest := ParseResolvConf("# by hand\nnameserver 127.0.0.53\n nameserver\tfe80::1%eth0\nnameserver\nnameserver x\noptions edns0 trust-ad\nsearch a b\n;x\nnameserver 127.0.0.53")
	if got := fmt.Sprint(servers, rest); got != "[127.0.0.53 fe80::1%eth0] [options edns0 trust-ad search a b]" {
		t.Error(got)
	}
	text := ResolvConf(servers, append(rest, "options trust-ad"))
	if want := resolvConfMark + "\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\noptions edns0\nsearch a b\n"; text != want || !MadeResolvConf(text) {
		t.Errorf("%q", text)
	}
	for line, want := range map[string]bool{
		"hosts: files dns": false, "hosts: mymachines resolve [!UNAVAIL=return] files dns": true, "hosts: files dns resolve": false, "passwd: resolve": false, "hosts:resolve": true,
	} {
		if AsksVarlink(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
