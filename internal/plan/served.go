package plan

import (
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// ShareWindow is the time over which a share is looked at whose packets wait.
const ShareWindow = 500 * time.Millisecond

// Served is what a share was seen to get.
type Served struct {
	Waited  bool        // its packets waited whenever it was looked at, over ShareWindow
	Got     policy.Rate // meanwhile at most, in bits on the wire; 0 where nothing waited
	Surely  policy.Rate // likewise, at least: readings take their time
	Dropped uint64      // packets, by its leaves, since they were made
}

// ServedOver is what a share got whose packets waited all the time, which was between
// the shortest time and the longest; dropped is of all the time.
func ServedOver(shortest, longest time.Duration, bytes, dropped uint64) Served {
	over := func(took time.Duration) policy.Rate { return policy.Rate(float64(bytes) * 8 / took.Seconds()) }
	return Served{Waited: true, Got: over(shortest), Surely: over(longest), Dropped: dropped}
}

// String puts into words what a share was seen to get.
func (s Served) String() string {
	if !s.Waited {
		return "nothing of it waits"
	}
	return fmt.Sprintf("%s over %s, and more waits", threeDigits(s.Got), ShareWindow)
}

// verdict judges what a share got while its packets waited: less than is promised by
// more than a fiftieth is broken. Two packets of the size that TCP hands to a device at
// once may be missing by chance: where that is what is missing, nothing can be told.
func (s Served) verdict(min policy.Rate) Verdict {
	const packets = 2 * 8 * 64 << 10 // bits
	switch lacks := min - min/50; {
	case !s.Waited || s.Got >= lacks:
		return Kept
	case s.Got+policy.Rate(packets*uint64(time.Second)/uint64(ShareWindow)) >= lacks:
		return Unprovable
	}
	return Broken
}

// share judges a share by what it got while its packets waited, if that is known.
func (j Judgement) share(q Queue, n int, owner Owner, served map[Owner]Served, wrong string) Judgement {
	s, known := served[owner]
	j.Priority, j.Min = policy.Unset, q.Shares[n].Min
	evidence := fmt.Sprintf("read back: share %d of %s", n, q)
	switch {
	case wrong != "":
		j.Verdict, j.Evidence = Broken, wrong
	case !known:
		j.Verdict, j.Evidence = Unprovable, evidence+"; what it gets could not be read"
	default:
		j.Verdict, j.Evidence = s.verdict(j.Min), evidence+"; "+s.String()
	}
	if j.Verdict == Unprovable && known {
		j.Evidence += ": too few packets to tell"
	}
	return j
}
