package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// VRFFacts is what the routing domains of one network namespace are.
type VRFFacts struct {
	VRFs   []VRFDevice    `json:"vrfs"`   // by name
	Rules  []VRFRule      `json:"rules"`  // IPv4's, then IPv6's, each in the order of their use
	Accept map[string]int `json:"accept"` // tcp_l3mdev_accept and its like; only those that the kernel has
}

// A VRFDevice is a routing domain: a device of the kind vrf, its table, and the devices
// that are in it.
type VRFDevice struct {
	Name      string         `json:"name"`
	Index     int            `json:"index"`
	Table     uint32         `json:"table"`
	Up        bool           `json:"up"`
	Addresses []netip.Prefix `json:"addresses"` // of the device itself, which is the loopback of its domain
	Members   []VRFMember    `json:"members"`   // by name
	Routes    []VRFRoute     `json:"routes"`    // of the table, but for those that the kernel makes of addresses (local, broadcast, multicast)
}

// A VRFMember is a device whose packets go by the table of a VRF.
type VRFMember struct {
	Name      string         `json:"name"`
	Index     int            `json:"index"`
	Up        bool           `json:"up"`
	Addresses []netip.Prefix `json:"addresses"`
}

// A VRFRoute is one line of a table.
type VRFRoute struct {
	Destination netip.Prefix `json:"destination"`
	Kind        string       `json:"kind"` // unicast, unreachable, blackhole, prohibit, throw
	Gateways    []netip.Addr `json:"gateways"`
	Devices     []string     `json:"devices"`
	Metric      uint32       `json:"metric"`
}

// Default reports whether the route is for whatever has no other one.
func (r VRFRoute) Default() bool { return r.Destination.Bits() == 0 }

// Refuses reports whether the route ends a lookup without a way: what has no other
// route is not looked for in the main table then.
func (r VRFRoute) Refuses() bool {
	return r.Kind == "unreachable" || r.Kind == "blackhole" || r.Kind == "prohibit"
}

// String is the route as ip route shows it, in short.
func (r VRFRoute) String() string {
	words := []string{"default"}
	if !r.Default() {
		words[0] = r.Destination.String()
	}
	if r.Kind != "unicast" {
		words = slices.Insert(words, 0, r.Kind)
	}
	for i, device := range r.Devices {
		if i < len(r.Gateways) && r.Gateways[i].IsValid() {
			words = append(words, "via", r.Gateways[i].String())
		}
		words = append(words, "dev", device)
	}
	return strings.Join(words, " ")
}

// A VRFRule is a rule that sends lookups to a table.
type VRFRule struct {
	Family     int    `json:"family"` // 4 or 6
	Preference uint32 `json:"preference"`
	L3mdev     bool   `json:"l3mdev"` // to the table of the VRF that the packet or the socket is in
	Table      uint32 `json:"table"`  // 0 with l3mdev
	All        bool   `json:"all"`    // for every packet
}

// Tables that the kernel has by itself.
const (
	tableDefault = 253
	tableMain    = 254
	tableLocal   = 255
)

// VRF returns the device of that name.
func (f VRFFacts) VRF(name string) (VRFDevice, bool) {
	i := slices.IndexFunc(f.VRFs, func(v VRFDevice) bool { return v.Name == name })
	if i < 0 {
		return VRFDevice{}, false
	}
	return f.VRFs[i], true
}

// Names are those of the VRFs, in order.
func (f VRFFacts) Names() []string {
	names := make([]string, len(f.VRFs))
	for i, v := range f.VRFs {
		names[i] = v.Name
	}
	return names
}

// DefaultRoutes are those of one family (4 or 6) by which packets leave.
func (v VRFDevice) DefaultRoutes(family int) []VRFRoute {
	return slices.DeleteFunc(slices.Clone(v.Routes), func(r VRFRoute) bool {
		return !r.Default() || r.Refuses() || r.Destination.Addr().Is4() != (family == 4)
	})
}

// String is the rule in short: its preference and where it leads.
func (r VRFRule) String() string {
	where := map[uint32]string{tableDefault: "default", tableMain: "main", tableLocal: "local"}[r.Table]
	switch {
	case r.L3mdev:
		where = "l3mdev"
	case where == "":
		where = fmt.Sprintf("table %d", r.Table)
	}
	if !r.All {
		where += " (for some)"
	}
	return fmt.Sprintf("%d %s", r.Preference, where)
}
