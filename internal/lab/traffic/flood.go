package traffic

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-net/weir/internal/host"
)

// A Flood is a number of senders of small UDP datagrams, each on a socket of its
// own, as fast as the kernel takes them one by one. Their buffers are the host's
// default, as nearly every program has it.
type Flood struct {
	conns []net.Conn
	timer *time.Timer
	wg    sync.WaitGroup
	sent  atomic.Uint64

	mu     sync.Mutex
	failed error
}

// StartFlood sends datagrams of size bytes from n sockets until Stop, or until
// limit has passed. Of where, the congestion control does not count, and the pace is
// of each socket's payload.
func StartFlood(w Where, n, size int) (*Flood, error) {
	f := &Flood{}
	err := host.InNetns(w.Netns, func() error {
		for range n {
			conn, err := net.Dial("udp", w.To.String())
			if err != nil {
				return err
			}
			f.conns = append(f.conns, conn)
		}
		return nil
	})
	if err != nil {
		f.close()
		return nil, fmt.Errorf("flood %s: %w", w.To, err)
	}
	for _, conn := range f.conns {
		f.wg.Go(func() { f.pump(conn, make([]byte, size), w.Pace) })
	}
	f.timer = time.AfterFunc(limit, f.close)
	return f, nil
}

// Stop ends the flood and returns how many datagrams the kernel took. What a
// queue or a limit drops it took, too. The error is a sender's, which ended then.
func (f *Flood) Stop() (sent uint64, err error) {
	f.timer.Stop()
	f.close()
	f.wg.Wait()
	return f.sent.Load(), f.failed
}

// ahead is how much earlier than its pace says a socket may send: a timer for every
// datagram would cost more than the datagram.
const ahead = 2 * time.Millisecond

// pump sends until the socket is closed under it.
func (f *Flood) pump(conn net.Conn, data []byte, pace uint64) {
	var due time.Duration
	for begin := time.Now(); ; {
		if early := due - time.Since(begin); early > ahead {
			time.Sleep(early)
		}
		if _, err := conn.Write(data); errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			f.mu.Lock()
			f.failed = errors.Join(f.failed, fmt.Errorf("flood: %w", err))
			f.mu.Unlock()
			return
		}
		f.sent.Add(1)
		if pace > 0 {
			due += time.Duration(float64(len(data)) * 8 / float64(pace) * float64(time.Second))
		}
	}
}

// close is safe to call twice, as it is for Streams.
func (f *Flood) close() {
	for _, conn := range f.conns {
		_ = conn.Close()
	}
}
