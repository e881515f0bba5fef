package tc

import (
	"errors"

	"github.com/weir-net/weir/internal/plan"
)

// TryOffload reports whether a device takes mqprio in its hardware. Nothing but
// an attempt tells, so it makes one, on a link whose root is the kernel's own or
// ours; the root is the kernel's own afterwards. Some drivers reset the link on
// the way.
func TryOffload(link int, q plan.Queue, opts Options) (bool, error) {
	q.Offload = true
	opts.Adopt = false
	err := Apply(link, q, opts)
	if back := Remove(link); err == nil || errors.Is(err, ErrUnsupported) {
		return err == nil, back
	}
	return false, err
}
