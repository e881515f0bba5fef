package agent

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A draft is a policy held against this host. Plan, apply and status each begin
// with one, and say nothing that is not drawn from it.
type draft struct {
	policy  *policy.Policy
	want    *plan.Want
	facts   plan.Facts
	skipped []string // what could not be looked at, in words
	comparison
}

// draft looks at the host and reads the kernel back. It writes nothing; in the
// record that it was given, links have the names that they have now.
func (a *Agent) draft(ctx context.Context, r *state.Record, p *policy.Policy) (*draft, error) {
	if err := a.room().Check(); err != nil {
		return nil, err
	}
	d := &draft{policy: p}
	var err error
	if d.want, d.facts, d.skipped, err = a.want(ctx, p, r); err != nil {
		return nil, err
	}
	followNames(r, d.facts.Links)
	d.comparison, err = a.compare(ctx, r, p, d.want)
	return d, err
}

// proposed is the draft of a policy that somebody hands in, which is refused where a
// limit would not bind all that it is given for, and where nothing would hold one that weir
// set gave to a process that lives, or a VRF that it gave would not be there. What is in force is not: others make cgroups as they
// like, and status tells of those.
func (a *Agent) proposed(ctx context.Context, r *state.Record, p *policy.Policy) (*draft, error) {
	d, err := a.draft(ctx, r, p)
	if err != nil {
		return nil, err
	}
	var errs policy.Errors
	for _, u := range d.want.Unbound {
		errs = append(errs, u.Diagnostic)
	}
	unheld, err := a.unheld(r, d)
	if err != nil {
		return nil, err
	}
	if errs = append(errs, unheld...); len(errs) > 0 {
		return nil, errs
	}
	return d, nil
}

// unheld tells of limits and VRFs beside the policy that nothing would hold, of processes that
// live, and of groups.
func (a *Agent) unheld(r *state.Record, d *draft) (errs policy.Errors, err error) {
	if len(d.want.Unheld)+len(d.want.Astray) == 0 {
		return nil, nil
	}
	gone, err := a.gone(r.Sets, d.tags, r.IDs)
	if err != nil {
		return nil, err
	}
	for _, s := range r.Sets {
		if gone[s.Name] {
			continue
		}
		to := strings.TrimPrefix(s.Name, "set ")
		add := func(what, flag string) {
			errs = append(errs, policy.Diagnostic{
				Message: fmt.Sprintf("what weir set or weir run gave to %s: %s", to, what),
				Help:    fmt.Sprintf("weir set --%s --%s none takes it back", strings.Replace(to, ": ", " ", 1), flag),
			})
		}
		for _, promise := range []string{plan.PromiseEgress, plan.PromiseIngress} {
			if why := d.want.Unheld[s.Name][promise]; why != "" {
				add("no way to hold its "+promise+" limit: "+why, promise+"-max")
			}
		}
		if vrf := d.want.Astray[s.Name]; vrf != "" {
			add(fmt.Sprintf("no VRF %q would be here", vrf), "vrf")
		}
	}
	return errs, nil
}

// reached reports whether nothing is left to do.
func (d *draft) reached(r *state.Record) bool { return len(d.differences) == 0 && r.Journal == nil }

// Plan returns what an apply of the policy would change, in words and in order.
// It changes nothing.
func (a *Agent) Plan(ctx context.Context, p *policy.Policy) (differences []plan.Difference, err error) {
	err = a.reading(func(r *state.Record) error {
		d, err := a.proposed(ctx, r, p)
		if err != nil {
			return err
		}
		differences = d.differences
		return nil
	})
	return differences, err
}

// followNames gives links whose devices were renamed their new names. What is
// known of a device that is gone stays under its old name, unless another one
// has that name now.
func followNames(r *state.Record, devices map[string]plan.LinkFacts) {
	names := make(map[int]string, len(devices))
	for name, d := range devices {
		names[d.Index] = name
	}
	links := make(map[string]state.LinkRecord, len(r.Links))
	for name, l := range r.Links {
		if _, there := names[l.Index]; !there {
			links[name] = l
		}
	}
	shares := maps.Clone(r.IDs.Shares)
	for old, l := range r.Links {
		if name, there := names[l.Index]; there {
			links[name] = l
			if old != name && r.IDs.Shares[old] != nil {
				shares[name] = r.IDs.Shares[old]
			}
		}
	}
	r.Links, r.IDs.Shares = links, shares
}
