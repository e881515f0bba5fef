package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// ladderFinding shows which rungs of the strict-order ladder the kernel has.
func ladderFinding(f Facts) Finding {
	const stops = "strict order on a full line"
	var have, lack, unknown []string
	strict := false
	for _, s := range ladder {
		kind := string(s.scheduler)
		switch {
		case f.Features.Qdiscs[kind]:
			have = append(have, kind)
			strict = strict || s.scheduler != policy.FQ
		case f.Features.unprobed(kind):
			unknown = append(unknown, kind)
		default:
			lack = append(lack, kind)
		}
	}
	text := phrases(phrase("kernel has ", have), phrase("lacks ", lack), phrase("not known: ", unknown))
	switch {
	case strict:
		return Finding{ID: "strict-order", State: FindingOK, Text: text}
	case len(unknown) > 0:
		return f.unknown("strict-order", text, stops)
	case len(have) > 0:
		return Finding{ID: "strict-order", State: FindingWarn, Text: text, Stops: stops + ": fq's bands are weighted", Mend: "modprobe sch_prio"}
	}
	return Finding{ID: "strict-order", State: FindingFail, Text: text, Stops: stops, Mend: "modprobe -a sch_prio sch_htb"}
}

// linkFindings says what each device would get from scheduler: auto. Devices
// with the same answer share a finding.
func linkFindings(f Facts) []Finding {
	type answer struct{ text, stops string }
	sharers := map[answer][]string{}
	var order []answer
	for _, name := range slices.Sorted(maps.Keys(f.Links)) {
		if !queued(f.Links[name]) {
			continue
		}
		rung, why := Choose(policy.Link{Name: name, Scheduler: policy.Auto}, Demand{}, f.Links[name], f.Features)
		a := answer{"no rung without a rate", "strict order there"}
		switch {
		case why == "":
			a = answer{standing(rung), weak(rung)}
		case !f.Features.Qdiscs[string(policy.HTB)]:
			a.text = "no rung"
		}
		a.text += perhapsMQPrio(f.Links[name], f.Features)
		if sharers[a] == nil {
			order = append(order, a)
		}
		sharers[a] = append(sharers[a], name)
	}
	var findings []Finding
	for _, a := range order {
		names := sharers[a]
		found := Finding{ID: "link." + names[0], State: FindingOK, Text: some(names) + ": " + a.text}
		switch {
		case a.stops != "" && f.Features.anyUnprobed():
			found = f.unknown(found.ID, some(names)+": not known", "strict order there")
		case a.stops != "":
			found.State, found.Stops = FindingWarn, a.stops
			if f.Features.Qdiscs[string(policy.HTB)] {
				found.Mend = fmt.Sprintf("add its rate to the policy: links: {%s: {rate: 100Mbit}}", names[0])
			}
		}
		findings = append(findings, found)
	}
	if len(findings) == 0 {
		return []Finding{{ID: "link", State: FindingSkip, Text: "no device with a queue is up"}}
	}
	return findings
}

// perhapsMQPrio tells of the best rung, which auto never tries: no flag says
// whether a driver takes it, and the attempt may reset the device.
func perhapsMQPrio(l LinkFacts, f Features) string {
	if l.TXQueues < 2 || l.MQPrioHW || !f.Qdiscs[string(policy.MQPrio)] {
		return ""
	}
	return fmt.Sprintf("; perhaps its %d TX queues take mqprio in hardware: scheduler: mqprio tries it, and may reset the device", l.TXQueues)
}

// unprobed reports whether it is not known if the kernel has a kind of qdisc.
func (f Features) unprobed(kind string) bool {
	_, why := f.Unknown[FeatureQdisc(kind)]
	return !f.Qdiscs[kind] && (why || f.Qdiscs == nil)
}

// anyUnprobed reports whether there may be a rung that is not known of.
func (f Features) anyUnprobed() bool {
	return slices.ContainsFunc(ladder, func(s step) bool { return f.unprobed(string(s.scheduler)) })
}

// queued reports whether workloads can compete at a device: it is up and what
// it sends may have to wait. Bridges, veths and lo have no queue by default, and an ifb
// has one for what arrives elsewhere.
func queued(l LinkFacts) bool {
	return l.Up && !l.Ifb && l.Root.Kind != "noqueue" && l.Root.Kind != "noop"
}

// standing renders a rung with what it does not promise.
func standing(r Rung) string {
	text := fmt.Sprintf("%s, %d classes", r.Scheduler, r.Classes)
	if len(r.Lacks) > 0 {
		text += "; not promised: " + strings.Join(r.Lacks, "; ")
	}
	return text
}

// weak says what stops on a rung that keeps no strict order.
func weak(r Rung) string {
	switch {
	case r.ordered():
		return ""
	case r.Idle:
		return "strict order there, unless it is the device that makes packets wait"
	}
	return "strict order there"
}

// some names the first few of the names.
func some(names []string) string {
	const shown = 4
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

func phrase(lead string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return lead + strings.Join(names, ", ")
}

func phrases(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
