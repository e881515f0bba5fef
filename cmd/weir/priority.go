package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/policy"
)

// A priorityFlag is a priority: 4, or one for each link: eth0=6,eth1=3,default=4.
type priorityFlag struct {
	value policy.Priority
	given bool
}

func (f *priorityFlag) String() string { return "" }

func (f *priorityFlag) Type() string { return "priority" }

func (f *priorityFlag) Set(s string) error {
	if !strings.Contains(s, "=") {
		level, err := policy.ParseLevel(s)
		if err != nil {
			return err
		}
		f.value, f.given = policy.Priority{Default: level}, true
		return nil
	}
	p := policy.Priority{Default: policy.Unset, PerLink: map[string]policy.Level{}}
	for item := range strings.SplitSeq(s, ",") {
		link, text, ok := strings.Cut(item, "=")
		_, twice := p.PerLink[link]
		switch {
		case !ok:
			return &usageError{fmt.Sprintf("%q names no link", item), "as in eth0=6,eth1=3,default=4"}
		case twice || link == "default" && p.Default != policy.Unset:
			return &usageError{fmt.Sprintf("%s is named twice", link), "each link once"}
		}
		level, err := policy.ParseLevel(text)
		if err != nil {
			return err
		}
		if link == "default" {
			p.Default = level
			continue
		}
		if err := policy.CheckLinkName(link); err != nil {
			return err
		}
		p.PerLink[link] = level
	}
	f.value, f.given = p, true
	return nil
}

// knownLinks refuses a priority on a link that is not under contract: it would
// be remembered and mean nothing.
func knownLinks(a *agent.Agent, p policy.Priority) error {
	known, err := a.LinkNames()
	if err != nil {
		return err
	}
	for _, link := range slices.Sorted(maps.Keys(p.PerLink)) {
		if !slices.Contains(known, link) {
			return &hinted{fmt.Errorf("link %q: %w", link, agent.ErrNothingApplied),
				[]string{didYouMean(link, known, "weir status shows the links under contract")}}
		}
	}
	return nil
}
