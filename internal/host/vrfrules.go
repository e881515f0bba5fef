package host

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// rules reads what the library has no field for: which rules are l3mdev.
func rules() ([]plan.VRFRule, error) {
	all := []plan.VRFRule{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		var messages [][]byte
		err := undisturbed(func() (err error) {
			request := nl.NewNetlinkRequest(unix.RTM_GETRULE, unix.NLM_F_DUMP)
			request.AddData(nl.NewIfInfomsg(family))
			messages, err = request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWRULE)
			return err
		})
		if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("list rules: %w", err)
		}
		var some []plan.VRFRule
		for _, m := range messages {
			r, err := ruleOf(m)
			if err != nil {
				return nil, fmt.Errorf("list rules: %w", err)
			}
			some = append(some, r)
		}
		slices.SortStableFunc(some, func(a, b plan.VRFRule) int { return cmp.Compare(a.Preference, b.Preference) })
		all = append(all, some...)
	}
	return all, nil
}

func ruleOf(m []byte) (plan.VRFRule, error) {
	head := nl.DeserializeRtMsg(m)
	attributes, err := nl.ParseRouteAttr(m[head.Len():])
	if err != nil {
		return plan.VRFRule{}, err
	}
	r := plan.VRFRule{Family: 4, Table: uint32(head.Table), All: head.Src_len == 0 && head.Dst_len == 0 && head.Tos == 0 && head.Flags&netlink.FibRuleInvert == 0}
	if head.Family == unix.AF_INET6 {
		r.Family = 6
	}
	for _, a := range attributes {
		switch a.Attr.Type {
		case nl.FRA_PRIORITY:
			r.Preference = nl.NativeEndian().Uint32(a.Value)
		case unix.RTA_TABLE:
			r.Table = nl.NativeEndian().Uint32(a.Value)
		case nl.FRA_L3MDEV:
			r.L3mdev = a.Value[0] != 0
		case nl.FRA_IIFNAME, nl.FRA_OIFNAME, nl.FRA_FWMARK, nl.FRA_UID_RANGE, nl.FRA_IP_PROTO, nl.FRA_SPORT_RANGE, nl.FRA_DPORT_RANGE, nl.FRA_TUN_ID:
			r.All = false
		}
	}
	if r.L3mdev {
		r.Table = 0
	}
	return r, nil
}
