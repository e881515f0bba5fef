package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CPUs is a set of CPUs, in ascending order.
type CPUs []int

// mostCPUs is more than any kernel is built for.
const mostCPUs = 1 << 16

// ParseCPUs reads a list as the kernel writes it, such as 0-3,8. An empty one is no CPU.
func ParseCPUs(list string) (CPUs, error) {
	cpus := CPUs{}
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		if part == "" {
			continue
		}
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(high, 10, 16)
		}
		if err != nil || last < first {
			return nil, fmt.Errorf("list of CPUs %q: no such list", list)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// ParseCPUMask reads a set as the kernel writes masks: hexadecimal, 32 CPUs a group, the
// highest first.
func ParseCPUMask(mask string) (CPUs, error) {
	groups := strings.Split(strings.TrimSpace(mask), ",")
	if len(groups) > mostCPUs/32 {
		return nil, fmt.Errorf("mask of CPUs: %d groups", len(groups))
	}
	slices.Reverse(groups)
	cpus := CPUs{}
	for i, text := range groups {
		group, err := strconv.ParseUint(text, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("mask of CPUs %q: no such mask", mask)
		}
		for bit := range 32 {
			if group&(1<<bit) != 0 {
				cpus = append(cpus, i*32+bit)
			}
		}
	}
	return cpus, nil
}

// Mask is the set as the kernel takes masks.
func (c CPUs) Mask() string {
	groups := []uint32{0}
	for _, cpu := range c {
		for len(groups) <= cpu/32 {
			groups = append(groups, 0)
		}
		groups[cpu/32] |= 1 << (cpu % 32)
	}
	last := len(groups) - 1
	text := fmt.Sprintf("%x", groups[last])
	for i := last - 1; i >= 0; i-- {
		text += fmt.Sprintf(",%08x", groups[i])
	}
	return text
}

// String is the set as the kernel writes lists; of none it is empty.
func (c CPUs) String() string {
	var parts []string
	for i := 0; i < len(c); {
		last := i
		for last+1 < len(c) && c[last+1] == c[last]+1 {
			last++
		}
		switch {
		case last == i:
			parts = append(parts, strconv.Itoa(c[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", c[i], c[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// Only reports whether the set is this CPU alone.
func (c CPUs) Only(cpu int) bool { return len(c) == 1 && c[0] == cpu }
