package traffic

import (
	"context"
	"net"
	"sync"
	"time"
)

// A Stuffer opens connections and writes into each, as a program does that does not know
// that its peers are slow. Their buffers are TCP's own affair.
type Stuffer struct {
	cancel context.CancelFunc
	timer  *time.Timer
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  []*net.TCPConn
	failed error
	closed bool
}

// Stuff begins to open n connections, one after the other, and to write so many bytes into
// each until Stop, or until limit has passed. It does not wait for any of them.
func Stuff(w Where, n int, bytes uint64) *Stuffer {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Stuffer{cancel: cancel}
	s.wg.Go(func() {
		data := make([]byte, chunk) // for all: nobody writes to it
		for range n {
			conn, err := w.dialPlain(ctx)
			if err != nil {
				s.fail(err)
				return
			}
			if !s.add(conn) {
				return
			}
			s.wg.Go(func() { pour(conn, data, bytes) })
		}
	})
	s.timer = time.AfterFunc(limit, s.close)
	return s
}

// add keeps a connection, or closes it where all are closed.
func (s *Stuffer) add(conn *net.TCPConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.conns = append(s.conns, conn)
	return true
}

// Connections is how many connections there are. A peer may have accepted one more.
func (s *Stuffer) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// fail notes why no more connections are opened.
func (s *Stuffer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.failed = err
	}
}

// pour writes until all is written or the connection is closed under it.
func pour(conn *net.TCPConn, data []byte, bytes uint64) {
	for bytes > 0 {
		n, err := conn.Write(data[:min(uint64(len(data)), bytes)])
		if err != nil {
			return
		}
		bytes -= uint64(n)
	}
}

// Stop resets the connections and returns how many there were. The error says why there
// are no more.
func (s *Stuffer) Stop() (connections uint64, err error) {
	s.timer.Stop()
	s.close()
	s.wg.Wait()
	return uint64(len(s.conns)), s.failed
}

// close is safe to call twice, as it is for Streams.
func (s *Stuffer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cancel()
	for _, conn := range s.conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}
