package vrf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/plan"
)

// Read reads back the VRFs that were made, by their names; one that is not there is missing.
// Of links it tells those that were moved, and of what could be declared all that is there. It changes nothing.
func (r Room) Read() (map[string]plan.VRF, error) {
	m, err := r.load()
	if err != nil || len(m.Made) == 0 {
		return nil, err
	}
	common, err := m.lacks()
	if err != nil {
		return nil, err
	}
	s, err := look()
	if err != nil {
		return nil, err
	}
	found := map[string]plan.VRF{}
	for name := range m.Made {
		v, err := device(name)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		is := plan.VRF{Table: v.Table}
		if is.Lacks, err = lacksOf(v); err != nil {
			return nil, err
		}
		is.Lacks = append(is.Lacks, common...)
		for index, master := range s.masters {
			if _, ours := m.Placed[index]; ours && master == v.Attrs().Index {
				is.Links = append(is.Links, s.names[index])
			}
		}
		slices.Sort(is.Links)
		is.Declared = s.declared(v)
		if is.Added, err = s.added(m.Added[name]); err != nil {
			return nil, err
		}
		found[name] = is
	}
	return found, nil
}

// Names are those of the VRFs that were made, or about to be, sorted.
func (r Room) Names() ([]string, error) {
	m, err := r.load()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(m.Made)), nil
}

// Indexes are the numbers of the devices of the VRFs that were made, by their names.
func (r Room) Indexes() (map[string]int, error) {
	m, err := r.load()
	if err != nil {
		return nil, err
	}
	all := map[string]int{}
	for name := range m.Made {
		v, err := device(name)
		if err != nil {
			return nil, err
		}
		if v != nil {
			all[name] = v.Attrs().Index
		}
	}
	return all, nil
}

// lacks says in words what all VRFs of ours lack.
func (m *memory) lacks() (lacks []string, err error) {
	if m.Moving != nil {
		lacks = append(lacks, "links are on their way")
	}
	for _, name := range slices.Sorted(maps.Keys(sysctls)) {
		value, err := readSysctl(name)
		if err != nil {
			return nil, err
		}
		if value != sysctls[name] {
			lacks = append(lacks, fmt.Sprintf("%s is %s", strings.ReplaceAll(name, "/", "."), value))
		}
	}
	for _, family := range families() {
		l3mdev, first, last, err := rulesAre(family)
		switch {
		case err != nil:
			return nil, err
		case len(l3mdev) == 0:
			lacks = append(lacks, "no rule asks the tables of VRFs"+ofFamily(family))
		case len(first) > 0 || len(last) == 0:
			lacks = append(lacks, "the local table is not asked after those of VRFs"+ofFamily(family))
		}
		lost, err := m.lostSources(family)
		if err != nil {
			return nil, err
		}
		for _, s := range lost {
			lacks = append(lacks, fmt.Sprintf("no rule sends what comes from %s by its table", s.Address))
		}
	}
	return lacks, nil
}
