package plan

import (
	"cmp"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// ReceiveRungs are the rungs of the limits of what the sockets of workloads receive:
// workload -> rung.
type ReceiveRungs map[string]LimitRung

// receiveLadder is the ladder of limits of what workloads receive, the best rung first that
// asks nothing of their links.
var receiveLadder = []limitStep{
	{policy.MethodPace, climbPace, nil},
	{policy.MethodEDT, climbAnswers, []string{
		"only TCP is told: of all else what is above is dropped",
		"TCP whose acknowledgements leave by no declared link, or as another host's, is told by its window",
		"what it sends waits with what it acknowledges",
	}},
}

// ChooseReceive is [ChooseLimit] of what a workload receives, whose answers leave by some
// links.
func ChooseReceive(limit policy.Limit, links []policy.Link, divided map[string]string, f Facts) (LimitRung, string) {
	return climbLimits(receiveLadder, limit, links, ground{f, divided})
}

// climbAnswers asks for what holds what a workload receives in any case, and for links that
// keep what it answers until its time.
func climbAnswers(limit policy.Limit, links []policy.Link, on ground) string {
	if why := climbPace(limit, links, on); why != "" {
		return why
	}
	return climbTimes(limit, links, on)
}

// HowReceived chooses the rung of each limit of what workloads receive. One that finds none is
// taken to be on the first one, so that no link is to blame, too.
func HowReceived(p *policy.Policy, f Facts) ReceiveRungs {
	all, divided := ReceiveRungs{}, dividing(p)
	for _, w := range p.Workloads {
		limit := w.Contract.Ingress.Limit
		if limit == (policy.Limit{}) {
			continue
		}
		rung, _ := ChooseReceive(limit, p.Links, divided, f)
		rung.Method = cmp.Or(rung.Method, policy.MethodPace)
		all[w.Name] = rung
	}
	return all
}

// depart reports whether what workloads answer waits on the links.
func (r ReceiveRungs) depart() bool {
	for _, rung := range r {
		if rung.Method == policy.MethodEDT {
			return true
		}
	}
	return false
}

// Told is the rung of a workload's limit in words, none if there is none: "what sockets
// receive by pace: the best there is".
func (r ReceiveRungs) Told(workload string) []string {
	rung, ok := r[workload]
	if !ok {
		return nil
	}
	return []string{"what sockets receive " + rung.String()}
}

// why says how the limit of a workload is held, where that is not on the first rung.
func (r ReceiveRungs) why(workload string) string {
	if rung, ok := r[workload]; ok && rung.Method != policy.MethodPace {
		return " (limit of " + strings.Join(r.Told(workload), "") + ")"
	}
	return ""
}
