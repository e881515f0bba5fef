package traffic

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// chunk is what a sender hands to the kernel at once.
const chunk = 64 << 10

// Copy sends a number of bytes over one connection and returns how long it took
// from the call until the receiver said that it has all of them.
func Copy(ctx context.Context, w Where, bytes uint64) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	conn, err := w.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	got, err := sendAll(conn, bytes)
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("copy to %s: %w", w.To, context.Cause(ctx))
	case err != nil:
		return 0, fmt.Errorf("copy to %s: %w", w.To, err)
	case got != bytes:
		return 0, fmt.Errorf("copy to %s: %d of %d bytes arrived", w.To, got, bytes)
	}
	return time.Since(start), nil
}

func sendAll(conn *net.TCPConn, bytes uint64) (got uint64, err error) {
	if _, err := conn.Write([]byte{verbBulk}); err != nil {
		return 0, err
	}
	data := make([]byte, chunk)
	for left := bytes; left > 0; {
		n, err := conn.Write(data[:min(left, chunk)])
		if err != nil {
			return 0, err
		}
		left -= uint64(n)
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, err
	}
	err = binary.Read(conn, binary.BigEndian, &got)
	return got, err
}

// Streams is a number of TCP connections that send as much as they can.
type Streams struct {
	conns []*net.TCPConn
	timer *time.Timer
	wg    sync.WaitGroup
	sent  atomic.Uint64
}

// Send opens n connections and sends over them until Stop, or until limit has
// passed. The context counts for the connecting alone.
func Send(ctx context.Context, w Where, n int) (*Streams, error) {
	s := &Streams{}
	for range n {
		conn, err := w.dial(ctx)
		if err != nil {
			s.reset()
			return nil, err
		}
		s.conns = append(s.conns, conn)
	}
	for _, conn := range s.conns {
		s.wg.Go(func() { s.pump(conn) })
	}
	s.timer = time.AfterFunc(limit, s.reset)
	return s, nil
}

// Stop resets the connections, so that nothing of theirs waits in any queue of
// the sender, and returns how many bytes were handed to the kernel.
func (s *Streams) Stop() uint64 {
	s.timer.Stop()
	s.reset()
	s.wg.Wait()
	return s.sent.Load()
}

// Resent is what TCP has sent again.
type Resent struct {
	Segments uint64 `json:"segments"`
	Needless uint64 `json:"needless"` // of these had arrived before: the receiver says so (D-SACK)
}

// Plus returns the sums.
func (r Resent) Plus(other Resent) Resent {
	return Resent{Segments: r.Segments + other.Segments, Needless: r.Needless + other.Needless}
}

// Since returns what was sent again since then.
func (r Resent) Since(then Resent) Resent {
	return Resent{Segments: r.Segments - then.Segments, Needless: r.Needless - then.Needless}
}

// Resent is what TCP has sent again so far; nothing after Stop.
func (s *Streams) Resent() (all Resent) {
	for _, conn := range s.conns {
		if info := tcpInfo(conn); info != nil {
			all = all.Plus(Resent{Segments: uint64(info.Total_retrans), Needless: uint64(info.Dsack_dups)})
		}
	}
	return all
}

// pump sends until the connection is closed under it.
func (s *Streams) pump(conn *net.TCPConn) {
	if _, err := conn.Write([]byte{verbBulk}); err != nil {
		return
	}
	data := make([]byte, chunk)
	for {
		n, err := conn.Write(data)
		s.sent.Add(uint64(n))
		if err != nil {
			return
		}
	}
}

// reset is safe to call twice: closing a closed connection does nothing.
func (s *Streams) reset() {
	for _, conn := range s.conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}
