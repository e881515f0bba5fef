package tc

import (
	"slices"

	"github.com/weir-net/weir/internal/plan"
)

// Purge drops what waits in one class of a link, by new leaves in place of its own: in
// some of its buckets, or where none is named in all.
func Purge(link int, q plan.Queue, class int, buckets ...int) error {
	c, err := dial()
	if err != nil {
		return err
	}
	all, err := readEntries(c, link)
	c.close()
	if err != nil {
		return err
	}
	for b := range q.Leaves() {
		if len(buckets) > 0 && !slices.Contains(buckets, b) {
			continue
		}
		if e, ok := all.find(false, leafHandle(q, class, b)); ok {
			if err := deleteOp(link, e).Run(); err != nil {
				return err
			}
		}
	}
	return Apply(link, q, Options{})
}
