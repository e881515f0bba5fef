package policy

import (
	"strconv"
	"strings"
)

// ParseLevel reads a priority, a decimal number from 0 to 15. The error is a
// *ValueError.
func ParseLevel(s string) (Level, error) {
	n, err := number("priority", s, 0, Levels-1)
	if err != nil {
		invalid := err.(*ValueError)
		if invalid.Help == "0 to 15" {
			invalid.Help += ", and 15 is the highest"
		}
		return Unset, invalid
	}
	return Level(n), nil
}

// String writes the level as ParseLevel reads it; Unset is "unset".
func (l Level) String() string {
	if l == Unset {
		return "unset"
	}
	return strconv.Itoa(int(l))
}

// String writes the priority as in a policy: "4", or "{eth1: 2, default: 4}".
// An empty one is "unset".
func (p Priority) String() string {
	if len(p.PerLink) == 0 {
		return p.Default.String()
	}
	links := sortedKeys(p.PerLink)
	for i, link := range links {
		links[i] = link + ": " + p.PerLink[link].String()
	}
	if p.Default != Unset {
		links = append(links, "default: "+p.Default.String())
	}
	return "{" + strings.Join(links, ", ") + "}"
}
