package traffic

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
)

// A Server receives on one TCP port, counts the payload of all connections, and
// answers: it echoes requests, and tells the sender of a copy how much came.
type Server struct {
	listener *net.TCPListener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[*net.TCPConn]bool
	ended  tally // of the connections that are no more
	closed bool
}

// A tally is what TCP itself says it has received: on a busy machine the process
// reads late and then much at once.
type tally struct{ bytes, segments uint64 }

func (t *tally) add(more tally) {
	t.bytes += more.bytes
	t.segments += more.segments
}

// The first byte of a connection says what it is.
const (
	verbBulk byte = 'b'
	verbEcho byte = 'e'
)

// Serve starts a server in a namespace.
func Serve(netns string, at netip.AddrPort) (*Server, error) { return serveWith(netns, at, large) }

func serveWith(netns string, at netip.AddrPort, receive func(fd int) error) (*Server, error) {
	listener, err := listenTCP(netns, at, receive)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, conns: map[*net.TCPConn]bool{}}
	s.wg.Go(s.accept)
	return s, nil
}

// Bytes is the payload received so far, bulk and requests, and up to two bytes
// a connection for its begin and its end. Bytes count when they can be read, so
// after a loss many count at once.
func (s *Server) Bytes() uint64 { return s.tally().bytes }

// Segments is how many segments with payload have arrived so far. They count at
// once, also after a loss and where they arrive twice: it is what the line
// carried, as Bytes is what came of it.
func (s *Server) Segments() uint64 { return s.tally().segments }

func (s *Server) tally() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.ended
	for conn := range s.conns {
		sum.add(tallyOf(conn))
	}
	return sum
}

// tallyOf is what a connection has received; nothing once it is closed.
func tallyOf(conn *net.TCPConn) tally {
	info := tcpInfo(conn)
	if info == nil {
		return tally{}
	}
	return tally{info.Bytes_received, uint64(info.Data_segs_in)}
}

// end closes a connection that still counts, and keeps its count.
func (s *Server) end(conn *net.TCPConn) error {
	if !s.conns[conn] {
		return nil
	}
	delete(s.conns, conn)
	s.ended.add(tallyOf(conn))
	return conn.Close()
}

// Close ends the server and all its connections and waits for them.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	err := s.listener.Close()
	for conn := range s.conns {
		err = errors.Join(err, s.end(conn))
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			conn.Close()
		} else {
			s.conns[conn] = true
			s.wg.Go(func() { s.serve(conn) })
		}
		s.mu.Unlock()
	}
}

// serve ends with its connection; a peer that resets it is none of our errors.
func (s *Server) serve(conn *net.TCPConn) {
	defer func() {
		s.mu.Lock()
		_ = s.end(conn)
		s.mu.Unlock()
	}()
	var verb [1]byte
	if _, err := io.ReadFull(conn, verb[:]); err != nil {
		return
	}
	read := conn.Read
	if verb[0] == verbEcho {
		in, err := newPrompt(conn)
		if err != nil {
			return
		}
		read = in.Read
	}
	data := make([]byte, 128<<10)
	var got uint64
	for {
		n, err := read(data)
		got += uint64(n)
		if verb[0] == verbEcho && n > 0 {
			if _, err := conn.Write(data[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			// Nobody may be left to read it: a stream that was stopped.
			_ = binary.Write(conn, binary.BigEndian, got)
			return
		} else if err != nil {
			return
		}
	}
}
