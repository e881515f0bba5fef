package traffic

import (
	"io"
	"net"
	"net/netip"
	"sync"
)

// A Greeter tells everybody who connects one word, by which they know whom they have reached.
type Greeter struct {
	listener *net.TCPListener
	wg       sync.WaitGroup
}

// Greet starts a greeter in a namespace.
func Greet(netns string, at netip.AddrPort, word string) (*Greeter, error) {
	listener, err := listenTCP(netns, at, tuned)
	if err != nil {
		return nil, err
	}
	g := &Greeter{listener: listener}
	g.wg.Go(func() {
		for {
			conn, err := g.listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, word) // it fits into any buffer; who does not read it has gone
			conn.Close()
		}
	})
	return g, nil
}

// Close ends the greeter.
func (g *Greeter) Close() error {
	err := g.listener.Close()
	g.wg.Wait()
	return err
}
