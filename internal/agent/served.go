package agent

import (
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
)

// shareLook is the time between two looks at what waits in shares.
const shareLook = 50 * time.Millisecond

// served looks at what each share gets. Where nothing waits one look tells, else it
// takes plan.ShareWindow. Of what can not be read it tells nothing.
func (a *Agent) served(w *plan.Want) map[plan.Owner]plan.Served {
	all, first := map[plan.Owner]plan.Served{}, a.lookAtShares(w)
	waiting := map[plan.Owner]bool{}
	for owner, share := range first {
		if share.Backlog == 0 {
			all[owner] = plan.Served{Dropped: share.Drops}
		} else {
			waiting[owner] = true
		}
	}
	for begin, ended := time.Now(), false; len(waiting) > 0 && !ended; {
		time.Sleep(shareLook)
		ended = time.Since(begin) >= plan.ShareWindow
		last := a.lookAtShares(w)
		for owner := range waiting {
			was, is := first[owner], last[owner]
			switch {
			case is.Bytes < was.Bytes || is.end.IsZero(): // made anew, or not there any more
				delete(waiting, owner)
			case is.Backlog == 0:
				all[owner] = plan.Served{Dropped: is.Drops}
				delete(waiting, owner)
			case ended: // of two readings that take their time
				all[owner] = plan.ServedOver(is.begin.Sub(was.end), is.end.Sub(was.begin), is.Bytes-was.Bytes, is.Drops)
			}
		}
	}
	return all
}

// A glance is what one share had sent between two times, and what waited.
type glance struct {
	begin, end time.Time
	tc.ShareCounters
}

func (a *Agent) lookAtShares(w *plan.Want) map[plan.Owner]glance {
	all := map[plan.Owner]glance{}
	for _, link := range w.Links {
		if len(link.Queue.Shares) == 0 {
			continue
		}
		var shares []tc.ShareCounters
		begin := time.Now()
		err := a.inScope(func() (err error) {
			shares, err = tc.Shares(link.Index)
			return err
		})
		if err != nil {
			continue // the differences tell of it
		}
		for n, id := range link.Entitled() {
			if n < len(shares) && id != plan.Unclaimed {
				all[plan.Owner{Contract: id, Link: link.Index}] = glance{begin, time.Now(), shares[n]}
			}
		}
	}
	return all
}
