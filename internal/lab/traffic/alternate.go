package traffic

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weir-net/weir/internal/host"
)

// Alternate floods two ports by turns with datagrams of size bytes, as fast as the kernel takes
// them: n senders, all to the one, then all to the other, in so many rounds. Each turn is so short that what else the
// host does, and how fast its CPUs are, meets both alike. They change their order, so that this holds too for what comes as regularly
// as they do: a tick each 4 ms would meet the same port in every round of two turns of 2 ms. It ends when all have had their turns.
func Alternate(one, other Where, n, size int, turns Turns) error {
	var all []alternating
	defer func() {
		for _, a := range all {
			a.close()
		}
	}()
	for range n {
		var a alternating
		for i, w := range []Where{one, other} {
			err := host.InNetns(w.Netns, func() (err error) {
				a[i], err = net.Dial("udp", w.To.String())
				return err
			})
			if err != nil {
				a.close()
				return fmt.Errorf("flood %s: %w", w.To, err)
			}
		}
		all = append(all, a)
	}
	begin := time.Now()
	failed := make([]error, n)
	var senders sync.WaitGroup
	for i, a := range all {
		senders.Go(func() { failed[i] = a.pump(make([]byte, size), begin, turns) })
	}
	senders.Wait()
	return errors.Join(failed...)
}

// alternating are the two sockets of one sender.
type alternating [2]net.Conn

// pump sends until all turns are over. Their times are the same for all senders.
func (a alternating) pump(data []byte, begin time.Time, turns Turns) error {
	const looks = 16 // datagrams from one look at the clock to the next
	for turn, which := range turns.order(len(a)) {
		conn, end := a[which], begin.Add(time.Duration(turn+1)*turns.Slice)
		for time.Now().Before(end) {
			for range looks {
				if _, err := conn.Write(data); err != nil {
					return fmt.Errorf("flood: %w", err)
				}
			}
		}
	}
	return nil
}

func (a alternating) close() {
	for _, conn := range a {
		if conn != nil {
			_ = conn.Close()
		}
	}
}
