package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// maxPorts is how many ports one match item may name, counted one by one: each
// is an entry of the kernel's match table.
const maxPorts = 1024

// parsePorts reads a port ("80") or a range with both ends in it ("8000-8099").
// The error is a *ValueError.
func parsePorts(s string) (PortRange, error) {
	first, last, ranged := strings.Cut(s, "-")
	if s != "" && strings.Trim(s, "0123456789-") != "" || first == "" || ranged && last == "" {
		return PortRange{}, portNameError(s)
	}
	r := PortRange{}
	from, err := portNumber(first)
	if err != nil {
		return r, err
	}
	to := from
	if ranged {
		if to, err = portNumber(last); err != nil {
			return r, err
		}
	}
	if from > to {
		return r, &ValueError{"port range " + quote(s) + " runs backwards", "write " + last + "-" + first}
	}
	return PortRange{from, to}, nil
}

func portNumber(s string) (uint16, error) {
	if s == "0" {
		return 0, &ValueError{"port 0 is never on the wire", "1 to 65535"}
	}
	n, err := number("port", s, 1, 65535)
	return uint16(n), err
}

// portNameError refuses a name: /etc/services differs from host to host.
func portNameError(s string) error {
	help := `write numbers, as in 80 or "8000-8099"`
	services := []struct{ name, port string }{
		{"ftp", "21"}, {"ssh", "22"}, {"smtp", "25"}, {"dns", "53"}, {"domain", "53"}, {"http", "80"},
		{"ntp", "123"}, {"https", "443"}, {"mysql", "3306"}, {"postgresql", "5432"},
	}
	for _, service := range services {
		if strings.EqualFold(service.name, s) {
			help = "ports are numbers: " + service.name + " is usually " + service.port
		}
	}
	if strings.ContainsAny(s, ":,") && strings.Trim(s, "0123456789:, ") == "" && s != "" {
		help = "a range is " + `"8000-8099"` + ", several ports are a list: [80, 443]"
	}
	return &ValueError{"port " + quote(s) + " is not a port", help}
}

// Count is the number of ports in the range.
func (r PortRange) Count() int { return int(r.Last) - int(r.First) + 1 }

// String writes the range as parsePorts reads it.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return strconv.Itoa(int(r.First)) + "-" + strconv.Itoa(int(r.Last))
}

// portsAt is a range and where it stands in the file.
type portsAt struct {
	PortRange
	span Span
}

// sortPorts returns the ranges in order, and the first ports that two of them
// share, where the second of the two stands; nil if there are none.
func sortPorts(written []portsAt) (ranges []PortRange, twice *portsAt) {
	slices.SortStableFunc(written, func(a, b portsAt) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	ranges = make([]PortRange, len(written))
	for i, w := range written {
		ranges[i] = w.PortRange
		if twice != nil || i == 0 || w.First > written[i-1].Last {
			continue
		}
		before := written[i-1]
		twice = &portsAt{PortRange{w.First, min(w.Last, before.Last)}, w.span}
		if before.span.after(w.span) {
			twice.span = before.span
		}
	}
	return ranges, twice
}
