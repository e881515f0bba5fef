package tc

import (
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// Floor is what every class of a queue gets even if more urgent ones want all:
// htb's guaranteed rates of all its leaves, and nothing on the strict rungs.
func Floor(q plan.Queue) policy.Rate {
	if q.Scheduler != policy.HTB {
		return 0
	}
	return policy.Rate(floorRate(uint64(q.Rate)/8, q.Leaves())*8) * policy.Rate(q.Leaves())
}
