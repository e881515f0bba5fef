package plan

import (
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// classLimit judges a limit that a class of htb holds, by what it got while its packets
// waited, if that is known.
func (j Judgement) classLimit(q Queue, n int, owner Owner, served map[Owner]Served, wrong string) Judgement {
	s, known := served[owner]
	j.Promise, j.Priority, j.Max = PromiseEgress, policy.Unset, q.Shares[n].Max
	if j.Max == 0 {
		j.Max = q.Rate // the line holds it
	}
	evidence := "read back: " + Limit{Max: j.Max}.String() + " by " + string(policy.MethodHTB)
	switch {
	case wrong != "":
		j.Verdict, j.Evidence = Broken, wrong
	case !known:
		j.Verdict, j.Evidence = Unprovable, evidence+"; what it gets could not be read"
	default:
		if s.Dropped > 0 {
			evidence += fmt.Sprintf("; %d packets dropped", s.Dropped)
		}
		j.Verdict, j.Evidence = s.below(j.Max), evidence+"; "+s.String()
	}
	return j
}

// below judges what was let through while packets waited: what is above the limit by more
// than a fiftieth, and one packet of the size that TCP hands to a device at once, is
// broken.
func (s Served) below(max policy.Rate) Verdict {
	const packet = 8 * 64 << 10 // bits
	if s.Waited && s.Surely > max+max/50+policy.Rate(packet*uint64(time.Second)/uint64(ShareWindow)) {
		return Broken
	}
	return Kept
}
