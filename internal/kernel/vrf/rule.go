package vrf

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Attributes of rules (linux/fib_rules.h).
const (
	fraSource   = 2
	fraPriority = 6
	fraTable    = 15
	fraL3mdev   = 19
	fraProtocol = 21

	actionToTable = 1
	ruleHead      = 12
)

// The priorities of rules: where the kernel puts l3mdev by itself, that of an address
// behind it, and where local goes, before main (32766).
const (
	l3mdevPriority = 1000
	sourcePriority = 1001
	localLast      = 32765
)

// selectors are the attributes by which a rule is of some packets only: source,
// destination, devices, mark, ports and the like.
var selectors = []uint16{1, fraSource, 3, 10, 11, 12, 16, 17, 20, 22, 23, 24}

// A rule is what this package knows of one.
type rule struct {
	priority uint32
	table    uint32
	l3mdev   bool
	any      bool // for all packets
}

func ruleOf(m message) rule {
	r := rule{table: uint32(m.head[4]), any: true}
	r.priority, _ = m.number(fraPriority)
	if table, ok := m.number(fraTable); ok {
		r.table = table
	}
	if v := m.get(fraL3mdev); len(v) > 0 {
		r.l3mdev = v[0] != 0
	}
	for _, kind := range selectors {
		r.any = r.any && m.get(kind) == nil
	}
	r.any = r.any && m.head[7] == actionToTable
	return r
}

func (r rule) isLocal() bool { return r.any && !r.l3mdev && r.table == unix.RT_TABLE_LOCAL }

// listRules reads all rules of a family.
func listRules(family uint8) (all []message, err error) {
	ask := make([]byte, ruleHead)
	ask[0] = family
	if all, err = dump(unix.RTM_GETRULE, unix.RTM_NEWRULE, ask, ruleHead); err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	return all, nil
}

// newRule is a rule for all packets, as the kernel makes its own.
func newRule(family uint8, priority uint32) message {
	m := message{head: make([]byte, ruleHead)}
	m.head[0], m.head[7] = family, actionToTable
	m.addNumber(fraPriority, priority)
	return m
}

func localRule(family uint8, priority uint32) message {
	m := newRule(family, priority)
	m.head[4] = unix.RT_TABLE_LOCAL
	m.add(fraProtocol, []byte{unix.RTPROT_KERNEL})
	return m
}

func l3mdevRule(family uint8) message {
	m := newRule(family, l3mdevPriority)
	m.add(fraL3mdev, []byte{1})
	m.add(fraProtocol, []byte{unix.RTPROT_KERNEL})
	return m
}

func sourceRule(s source) message {
	m := newRule(familyOf(s.Address), sourcePriority)
	m.head[2] = uint8(s.Address.BitLen())
	m.add(fraSource, s.Address.AsSlice())
	m.addNumber(fraTable, s.Table)
	m.add(fraProtocol, []byte{unix.RTPROT_STATIC})
	return m
}

func familyOf(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func addRule(m message) error {
	return send(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m, unix.EEXIST)
}

// deleteRule takes a rule away, whoever made it.
func deleteRule(m message) error {
	return send(unix.RTM_DELRULE, 0, m.without(fraProtocol), unix.ENOENT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP)
}

// rulesAre says at which priorities the rules of a family ask the tables of VRFs, no later than
// the kernel's own does, and the local table before and after that.
func rulesAre(family uint8) (l3mdev, localFirst, localLast []uint32, err error) {
	all, err := listRules(family)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, m := range all {
		r := ruleOf(m)
		switch {
		case r.l3mdev && r.priority <= l3mdevPriority:
			l3mdev = append(l3mdev, r.priority)
		case r.isLocal() && r.priority < l3mdevPriority:
			localFirst = append(localFirst, r.priority)
		case r.isLocal():
			localLast = append(localLast, r.priority)
		}
	}
	return l3mdev, localFirst, localLast, nil
}

// rules puts l3mdev before local. The kernel makes the first with the first VRF of a
// namespace, whatever else asks their tables, and never again.
func (w *work) rules() error {
	for _, family := range families() {
		l3mdev, first, last, err := rulesAre(family)
		if err != nil {
			return err
		}
		lost, err := w.memory.lostSources(family)
		if err != nil {
			return err
		}
		for _, s := range lost {
			if err := w.step("send what comes from "+s.Address.String()+" by its table", func() error { return addRule(sourceRule(s)) }); err != nil {
				return err
			}
		}
		if len(l3mdev) == 0 {
			if err := w.step("ask the tables of VRFs by a rule"+ofFamily(family), func() error { return addRule(l3mdevRule(family)) }); err != nil {
				return err
			}
		}
		if len(last) == 0 {
			err := w.step("ask the local table after those of VRFs"+ofFamily(family), func() error { return addRule(localRule(family, localLast)) })
			if err != nil {
				return err
			}
		}
		for _, priority := range first {
			err := w.step("ask the local table first no more"+ofFamily(family), func() error { return deleteRule(localRule(family, priority)) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// lostSources are the rules of addresses of a family that are not there.
func (m *memory) lostSources(family uint8) (lost []source, err error) {
	rules, err := listRules(family)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, r := range rules {
		there[sourceWords(r)] = true
	}
	for _, s := range m.Sources {
		if familyOf(s.Address) == family && !there[sourceWords(sourceRule(s))] {
			lost = append(lost, s)
		}
	}
	return lost, nil
}

// sourceWords tells one rule of an address from another.
func sourceWords(m message) string {
	r := ruleOf(m)
	return fmt.Sprint(r.priority, r.table, m.head[2], m.get(fraSource))
}

func ofFamily(family uint8) string {
	if family == unix.AF_INET {
		return " (IPv4)"
	}
	return " (IPv6)"
}

// Families of multicast routing have rules of their own, which the kernel makes beside.
const (
	ipmrFamily  = 128
	ip6mrFamily = 129
)

// restoreRules puts the rules back as they were.
func restoreRules(was *before) error {
	for _, family := range families() {
		for _, priority := range was.LocalFirst[family] {
			if err := addRule(localRule(family, priority)); err != nil {
				return err
			}
		}
		if len(was.LocalLast[family]) == 0 {
			if err := deleteRule(localRule(family, localLast)); err != nil {
				return err
			}
		}
		if !was.L3mdev[family] {
			beside := map[uint8]uint8{unix.AF_INET: ipmrFamily, unix.AF_INET6: ip6mrFamily}[family]
			for _, f := range []uint8{family, beside} {
				if err := deleteRule(l3mdevRule(f)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
