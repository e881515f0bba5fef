package traffic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-net/weir/internal/host"
)

// A Receiver takes what comes to one port, by TCP and UDP, reads it and counts it: what an
// application gets, whatever devices and queues counted before. What its TCP may offer a sender before a byte has come is
// an application's, too, and not what a large buffer of its own would be.
type Receiver struct {
	server *Server
	conn   *net.UDPConn
	wg     sync.WaitGroup

	datagrams, bytes atomic.Uint64
}

// Received is what came, as payload, and in how many packets: segments and datagrams.
type Received struct {
	At      int64             `json:"at"` // when it was counted, ns since 1970
	Bytes   uint64            `json:"bytes"`
	Packets uint64            `json:"packets"`
	Each    map[string]uint64 `json:"each,omitempty"` // bytes of each TCP connection that is open, by its far end
}

// Receive opens one in a namespace.
func Receive(netns string, at netip.AddrPort) (*Receiver, error) {
	server, err := serveWith(netns, at, tuned)
	if err != nil {
		return nil, err
	}
	r := &Receiver{server: server}
	err = host.InNetns(netns, func() (err error) {
		r.conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err == nil {
		err = r.conn.SetReadBuffer(buffer)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("receive at %s: %w", at, err), r.Close())
	}
	r.wg.Go(r.read)
	return r, nil
}

// read takes datagrams until the socket is closed.
func (r *Receiver) read() {
	data := make([]byte, 64<<10)
	for {
		n, _, err := r.conn.ReadFromUDPAddrPort(data)
		if err != nil {
			return
		}
		r.datagrams.Add(1)
		r.bytes.Add(uint64(n))
	}
}

// What takes longer to count is not of one moment: in a millisecond a hundredth comes of what does in 100.
const atOnce = 200 * time.Microsecond

// Received counts what has come so far, and again where it was kept from its CPU meanwhile: the quickest of four.
func (r *Receiver) Received() Received {
	all, took := r.count()
	for try := 1; try < 4 && took > atOnce; try++ {
		if again, quicker := r.count(); quicker < took {
			all, took = again, quicker
		}
	}
	all.Each = r.server.each()
	return all
}

// count counts all that has come, and says when, in the middle of the time that it takes.
func (r *Receiver) count() (all Received, took time.Duration) {
	begin := time.Now()
	streams := r.server.tally()
	all.Bytes, all.Packets = streams.bytes+r.bytes.Load(), streams.segments+r.datagrams.Load()
	took = time.Since(begin)
	all.At = begin.Add(took / 2).UnixNano()
	return all, took
}

// Close ends it and all its connections and waits for them.
func (r *Receiver) Close() error {
	err := r.server.Close()
	if r.conn != nil {
		err = errors.Join(err, r.conn.Close())
	}
	r.wg.Wait()
	return err
}

// each is the payload that every open connection has received.
func (s *Server) each() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes := make(map[string]uint64, len(s.conns))
	for conn := range s.conns {
		bytes[conn.RemoteAddr().String()] = tallyOf(conn).bytes
	}
	return bytes
}
