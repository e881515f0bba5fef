package plan

import (
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Detour is the way of all that arrives by a link with a limit that an ifb holds: over a
// device of Weir's own, whose queue has the limit as its rate. The zero Detour is none.
type Detour struct {
	Queue Queue
	Drift []string // in words: where it is not as Weir builds it
}

// detourStore is the most that the queue of a detour has in store at rates where that is
// more than the fiftieth that every limit is forgiven.
const detourStore policy.Size = 64 << 10

// AsksForIfb reports whether a policy has a limit that an ifb would hold on this host, if the
// kernel has that.
func AsksForIfb(p *policy.Policy, f Facts) bool {
	f.Features.Ifb = true
	return slices.ContainsFunc(p.Links, func(l policy.Link) bool { return ownRungs(l, f)[PromiseIngress].Method == policy.MethodIfb })
}

// detour is the way that holds a link's own limit of what arrives, where that is its rung.
func (r OwnRungs) detour(l policy.Link, f Features) Detour {
	if r[PromiseIngress].Method != policy.MethodIfb {
		return Detour{}
	}
	q := Queue{Scheduler: policy.HTB, Rate: l.Ingress.Max, Classes: 1, Leaf: leaf(f), Map: SpreadOver(1)}
	return Detour{Queue: q.Normal()}
}

// Any reports whether there is any part of a detour.
func (d Detour) Any() bool { return d.Queue.Classes > 0 || len(d.Drift) > 0 }

// limit puts what the detour holds into words, behind what is said before.
func (d Detour) limit() string {
	if !d.Any() {
		return ""
	}
	return "; ingress " + d.words()
}

// unlike says how two detours differ, "" if they do not: "ingress not queued -> at most
// 50Mbit by ifb".
func (d Detour) unlike(other Detour) string {
	is, shall := d.words(), other.words()
	if is == shall && !d.Queue.Equal(other.Queue) {
		is, shall = d.Queue.unlike(other.Queue)
	}
	if is == shall {
		return ""
	}
	return PromiseIngress + " " + is + " -> " + shall
}

func (d Detour) words() string {
	switch {
	case len(d.Drift) > 0:
		return "by ifb (" + strings.Join(d.Drift, "; ") + ")"
	case !d.Any():
		return "not queued"
	}
	return Limit{Max: d.Queue.Rate}.String() + " by " + string(policy.MethodIfb)
}

// detoured judges a limit that the queue of an ifb holds, by what left that queue while it was
// looked at, if that is known.
func (j Judgement) detoured(d Detour, owner Owner, filtered map[Owner]Filtered, wrong string) []Judgement {
	if !d.Any() {
		return nil
	}
	return j.glanced(Limit{Max: d.Queue.Rate, Burst: detourStore}, d.words(), owner, filtered, wrong)
}
