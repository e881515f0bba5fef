package tc

import "github.com/weir-net/weir/internal/plan"

// Purge drops what waits in one class of a link, by new leaves in place of its own.
func Purge(link int, q plan.Queue, class int) error {
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
		if e, ok := all.find(false, leafHandle(q, class, b)); ok {
			if err := deleteOp(link, e).Run(); err != nil {
				return err
			}
		}
	}
	return Apply(link, q, Options{})
}
