package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// broken says of promises that are not kept what was wanted, what is there
// instead, and what to do. Those with one cause stand together.
func (v *statusView) broken(s *agent.Status) {
	type cause struct{ where, evidence string }
	victims := map[cause][]string{}
	var order []cause
	limits, full := false, ""
	for _, j := range s.Promises {
		if j.Verdict != plan.Broken {
			continue
		}
		if j.Promise == plan.PromiseMemory {
			full = j.Workload
		}
		limits = limits || j.Promise != plan.PromiseMemory && j.Promise != plan.PromiseShare && !glanced(s, j)
		c := cause{where(j), j.Evidence}
		if victims[c] == nil {
			order = append(order, c)
		}
		victims[c] = append(victims[c], strings.TrimSpace(j.Workload+" "+j.Terms()))
	}
	told := map[string]bool{}
	for _, c := range order {
		where := c.where
		if where == plan.EveryLink {
			where = "every link"
		}
		v.line("\n%s on %s", v.red("broken"), where)
		hang(&v.b, "  wanted  ", some(victims[c]), v.width, nil)
		hang(&v.b, "  got     ", c.evidence, v.width, nil)
		told[c.evidence] = true
	}
	if s.Proved != nil && len(order) > 0 {
		hang(&v.b, "  since   ", fmt.Sprintf("found kept at %s by weir %s, and broken now",
			s.Proved.When.Local().Format(time.DateTime), s.Proved.Verb), v.width, nil)
	}
	var others []plan.Difference
	for _, d := range s.Differences {
		if !told[d.Detail] && !told[d.Object+": "+d.Detail] {
			others = append(others, d)
		}
	}
	if len(others) > 0 {
		v.line("\n%s", v.red("not as the policy says"))
		printDifferences(&v.b, v.painter, others)
	}
	switch {
	case len(s.Differences) > 0:
		v.line("  next    weir apply %s", fileWord(s.Policy))
	case full != "": // and all is in place that bounds it
		v.line("  next    weir sockets --workload %s shows who holds it: it goes as peers read", full)
	case limits: // and all is in place that holds them
		v.line("  next    weir status, once more: what counts is the last whole %g s", plan.LimitWindow.Seconds())
	case len(order) > 0: // shares, limits in classes and those of filters, likewise
		v.line("  next    weir status, once more: what counts is %s in which packets come or wait", plan.ShareWindow)
	case !s.OK && s.Unfinished == nil: // what the policy names is not here; the warnings say what
		v.line("  next    bring it back, or change the policy; then weir apply %s", fileWord(s.Policy))
	}
}

// glanced reports whether a promise is held by what was looked at for plan.ShareWindow
// only: a class of htb, or a filter.
func glanced(s *agent.Status, j plan.Judgement) bool {
	return slices.ContainsFunc(s.Limits, func(l agent.LimitStatus) bool {
		return l.Workload == j.Workload && l.Promise == j.Promise &&
			(l.Rung == string(policy.MethodHTB) || l.Rung == string(policy.MethodPolice)) &&
			(l.Link == j.Link || l.Link == plan.EveryLink && j.Link != plan.EveryLink)
	})
}

// where says where a promise holds: what sockets receive, hold and are bound to is of no link.
func where(j plan.Judgement) string {
	if j.Link == plan.EveryLink && slices.Contains([]string{plan.PromiseIngress, plan.PromiseMemory, plan.PromiseVRF}, j.Promise) {
		return "sockets"
	}
	return j.Link
}

// some names the first few.
func some(names []string) string {
	const shown = 6
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
