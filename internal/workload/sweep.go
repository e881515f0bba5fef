package workload

import (
	"context"
	"errors"
	"fmt"
)

// EachSocket calls fn for every IPv4 and IPv6 socket of every process that
// filter accepts (nil accepts all); descriptors of the others are not looked
// at. A socket that several processes share is given once for each. The socket
// is closed when fn returns. Processes and sockets that vanish meanwhile are
// passed over. An error of fn ends the sweep and is returned; what permissions
// keep from us does not end it, but is returned, joined, in the end.
func EachSocket(ctx context.Context, filter func(Process) bool, fn func(Process, Socket) error) error {
	pids, err := processIDs()
	if err != nil {
		return err
	}
	var denied []error
	r := new(reader)
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sweep sockets: %w", err)
		}
		p, err := r.process(pid)
		if err == nil && !p.Zombie && (filter == nil || filter(p)) {
			var stop error
			err = eachSocket(p, func(s Socket) bool {
				defer s.Close()
				if stop = ctx.Err(); stop == nil {
					stop = fn(p, s)
				}
				return stop == nil
			})
			if stop != nil {
				return stop
			}
		}
		if err != nil && !errors.Is(err, ErrGone) {
			denied = append(denied, fmt.Errorf("read sockets of process %d: %w", pid, err))
		}
	}
	return errors.Join(denied...)
}
