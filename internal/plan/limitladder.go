package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A LimitRung is how a limit is held, and what that does not promise.
type LimitRung struct {
	Method policy.Method // MethodPace, MethodEDT, MethodHTB, MethodPolice or MethodIfb
	Why    string        // in words: why this rung and no better one
	Lacks  []string      // in words: what it does not promise
	// Without are the links that keep no answers, and why in words; only of what sockets receive.
	Without map[string]string
}

// A limitStep is a step of the ladder of limits: what stands in the way of a limit on
// some links, "" if nothing does, and what it lacks there.
type limitStep struct {
	method policy.Method
	climb  func(policy.Limit, []policy.Link, ground) string
	lacks  []string
}

// A ground is what limits stand on.
type ground struct {
	Facts
	divided map[string]string // link -> a workload for which htb has to divide it
}

// sendLadder is the ladder of limits of what workloads send, the best rung first.
var sendLadder = []limitStep{
	{policy.MethodPace, climbPace, nil},
	{policy.MethodEDT, climbTimes, []string{
		"what waits inside the limit leaves in the order in which it came: up to 100ms behind its own bulk",
		"what a full line held up leaves as fast as the line when it may, above the limit",
	}},
	{policy.MethodHTB, climbClass, []string{
		"what waits inside the limit waits behind its own bulk",
		"it ends at the link: none goes across links",
		"a class is of one workload: what others claim of the same cgroups, or has a tag, is not in it",
		"who has no priority goes as priority 0, whatever others gave its packets",
		"on a full line its flows do not share evenly with others of its priority",
	}},
}

// ownLadder is the ladder of limits of links themselves, in either direction.
var ownLadder = []limitStep{
	{policy.MethodPace, climbPace, nil},
	{policy.MethodPolice, climbPolice, []string{
		"what is above is dropped, TCP as well: nobody is paced, and nothing marked",
		"all flows share one bucket: who sends in bursts loses more",
		"what a device puts together on arrival counts its headers once: up to a twentieth more arrives",
	}},
}

// arriveLadder is the ladder of limits of what arrives by a link.
var arriveLadder = append(slices.Clone(ownLadder), limitStep{policy.MethodIfb, climbIfb, []string{
	"what is above waits in a queue of this host, and is dropped where that is full: nobody is paced",
	"each packet passes a second device: a third to two thirds of the packets a second that a CPU can do are lost",
	"where the kernel has no fq_codel all flows wait in one queue, and small packets behind bulk",
	"what stands behind it at the ingress of the link sees no packet: filters of others, and nftables' ingress hook",
	"where somebody takes its device away nothing arrives until the next apply",
}})

// ChooseLimit returns the rung of a limit of what a workload sends on some links: the
// one that the policy names, or the best that the kernel and the link allow. divided
// names, by link, a workload for which htb has to divide it. What stands in the way comes
// back as a reason in words.
func ChooseLimit(limit policy.Limit, links []policy.Link, divided map[string]string, f Facts) (LimitRung, string) {
	return climbLimits(sendLadder, limit, links, ground{f, divided})
}

// ChooseOwn is [ChooseLimit] of a link's own limit in one direction: PromiseEgress or
// PromiseIngress.
func ChooseOwn(promise string, limit policy.Limit, f Facts) (LimitRung, string) {
	if promise == PromiseIngress {
		return climbLimits(arriveLadder, limit, nil, ground{Facts: f})
	}
	return climbLimits(ownLadder, limit, nil, ground{Facts: f})
}

func climbLimits(ladder []limitStep, limit policy.Limit, links []policy.Link, on ground) (LimitRung, string) {
	var reasons []string
	for _, s := range ladder {
		if limit.Method != policy.MethodAuto && limit.Method != s.method {
			continue
		}
		if why := s.climb(limit, links, on); why != "" {
			if !slices.Contains(reasons, why) {
				reasons = append(reasons, why)
			}
			continue
		}
		return LimitRung{Method: s.method, Why: becauseOf(limit.Method != policy.MethodAuto, reasons), Lacks: s.lacks}, ""
	}
	return LimitRung{}, strings.Join(reasons, "; ")
}

func climbPace(_ policy.Limit, _ []policy.Link, f ground) string {
	return strings.Join(f.Features.NoLimits(), "; ")
}

func climbClass(limit policy.Limit, links []policy.Link, f ground) string {
	if limit.Burst != 0 {
		return "htb lets no burst of " + limit.Burst.String() + " through"
	}
	if limit.PPS != 0 {
		return "htb counts no packets"
	}
	if len(links) != 1 {
		return fmt.Sprintf("htb holds one link each, and this limit is of %d together: name the links", len(links))
	}
	l := links[0]
	if l.Scheduler != policy.Auto && l.Scheduler != policy.HTB {
		return fmt.Sprintf("scheduler %s of link %q holds nobody to a rate", l.Scheduler, l.Name)
	}
	rung, why := climbHTB(l, f.Links[l.Name], f.Features)
	if why == "" && limit.Max > rung.Rate {
		why = fmt.Sprintf("htb has %s there, less than the limit", rung.Rate)
	}
	return why
}

func climbPolice(limit policy.Limit, _ []policy.Link, f ground) string {
	switch {
	case limit.PPS != 0:
		return "police counts no packets"
	case limit.Burst != 0 && limit.Burst < policy.MinPoliceBurst:
		return "police would drop every packet of 64KiB at a burst of " + limit.Burst.String()
	case f.Features.lacks(f.Features.Police, FeaturePolice):
		return "kernel has no filters that police (cls_matchall, act_police and act_gact)"
	}
	return ""
}

func climbIfb(limit policy.Limit, _ []policy.Link, f ground) string {
	switch {
	case limit.PPS != 0:
		return "ifb counts no packets"
	case limit.Burst != 0:
		return "ifb lets no burst of " + limit.Burst.String() + " through"
	case f.Features.lacks(f.Features.Ifb, FeatureIfb):
		return "kernel can not queue what arrives (ifb, cls_u32 and act_mirred)"
	case !f.Features.Qdiscs[string(policy.HTB)]:
		return "ifb needs htb to hold a rate, and the kernel has none"
	}
	return ""
}

// String puts a rung into words: "by pace: the best there is".
func (r LimitRung) String() string { return fmt.Sprintf("by %s: %s", r.Method, r.Why) }
