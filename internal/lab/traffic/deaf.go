package traffic

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// Deaf is a port whose connections nobody ever reads from. What their peers write stays
// with these: the buffers here are small.
type Deaf struct {
	listener *net.TCPListener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  []*net.TCPConn
	closed bool
}

// deafBuffer is the size of their receive buffers in bytes; the kernel doubles it.
const deafBuffer = 8 << 10

// OpenDeaf opens one in a namespace.
func OpenDeaf(netns string, at netip.AddrPort) (*Deaf, error) {
	listener, err := listenTCP(netns, at, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, deafBuffer)
	})
	if err != nil {
		return nil, err
	}
	d := &Deaf{listener: listener}
	d.wg.Go(d.accept)
	return d, nil
}

func (d *Deaf) accept() {
	for {
		conn, err := d.listener.AcceptTCP()
		if err != nil {
			return
		}
		d.mu.Lock()
		if d.closed {
			conn.Close()
		} else {
			d.conns = append(d.conns, conn)
		}
		d.mu.Unlock()
	}
}

// Reset resets the connections that there are: their peers, if they are there, lose what
// they have written.
func (d *Deaf) Reset() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []error
	for _, conn := range d.conns {
		all = append(all, conn.SetLinger(0), conn.Close())
	}
	d.conns = nil
	return errors.Join(all...)
}

// Connections is how many connections there are.
func (d *Deaf) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// Close closes the port and its connections.
func (d *Deaf) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	err := d.listener.Close()
	d.wg.Wait()
	return errors.Join(err, d.Reset())
}
