package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weir-net/weir/internal/host"
)

// An Echo sends datagrams back.
type Echo struct {
	conn *net.UDPConn
	wg   sync.WaitGroup
}

// StartEcho starts an echo in a namespace.
func StartEcho(netns string, at netip.AddrPort) (*Echo, error) {
	conn, err := listenUDP(netns, at)
	if err != nil {
		return nil, err
	}
	e := &Echo{conn: conn}
	e.wg.Go(func() {
		data := make([]byte, 2048)
		for {
			n, from, err := e.conn.ReadFromUDPAddrPort(data)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = e.conn.WriteToUDPAddrPort(data[:n], from) // what is lost its sender counts
			}
		}
	})
	return e, nil
}

// Close ends the echo.
func (e *Echo) Close() error {
	err := e.conn.Close()
	e.wg.Wait()
	return err
}

// A Pulse is small datagrams at a steady pace to an Echo: it tells for how long a way was no way.
type Pulse struct {
	conn   *net.UDPConn
	to     netip.AddrPort
	stop   chan struct{}
	sender sync.WaitGroup
	reader sync.WaitGroup

	mu   sync.Mutex
	seen map[uint64]bool
	last time.Time // an echo came
	beat Beat
}

// A Beat is what a Pulse found out.
type Beat struct {
	Sent, Lost uint64        // datagrams; lost is one that no echo came of, whichever way it was lost
	Gap        time.Duration // the longest time without an echo
}

// settled is how long a pulse waits for echoes: the first one, and those that are on their way in the end.
const settled = time.Second

// StartPulse sends a datagram after the other. It returns when the first echo has come, which
// is what it is an error without. Stop must be called.
func StartPulse(ctx context.Context, w Where, every time.Duration) (*Pulse, error) {
	if every <= 0 {
		return nil, fmt.Errorf("pulse to %s: %s from one datagram to the next", w.To, every)
	}
	any := netip.IPv4Unspecified()
	if w.To.Addr().Is6() {
		any = netip.IPv6Unspecified()
	}
	// Not connected: where nothing leads there for a while that is an error of a datagram, not of the socket.
	conn, err := listenUDP(w.Netns, netip.AddrPortFrom(any, 0))
	if err != nil {
		return nil, err
	}
	p := &Pulse{conn: conn, to: w.To, stop: make(chan struct{}), seen: map[uint64]bool{}}
	first := make(chan struct{})
	p.reader.Go(func() { p.listen(first) })
	p.sender.Go(func() { p.send(every) })
	select {
	case <-first:
		return p, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(5 * settled):
		err = errors.New("no echo comes")
	}
	p.Stop()
	return nil, fmt.Errorf("pulse to %s: %w", w.To, err)
}

func (p *Pulse) send(every time.Duration) {
	begin := time.Now()
	for i := uint64(0); time.Since(begin) < limit; i++ {
		select {
		case <-p.stop:
			return
		case <-time.After(time.Until(begin.Add(time.Duration(i) * every))):
		}
		p.mu.Lock()
		p.beat.Sent++
		p.mu.Unlock()
		_, _ = p.conn.WriteToUDPAddrPort(binary.BigEndian.AppendUint64(nil, i), p.to) // one that can not be sent is lost
	}
}

// listen notes echoes; the first it tells.
func (p *Pulse) listen(first chan<- struct{}) {
	data := make([]byte, 64)
	for {
		n, _, err := p.conn.ReadFromUDPAddrPort(data)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != 8 {
			continue
		}
		now := time.Now()
		p.mu.Lock()
		if p.last.IsZero() {
			close(first)
		} else {
			p.beat.Gap = max(p.beat.Gap, now.Sub(p.last))
		}
		p.last = now
		p.seen[binary.BigEndian.Uint64(data)] = true
		p.mu.Unlock()
	}
}

// Stop ends the pulse, waits for the echoes that are on their way, and returns what was found out.
func (p *Pulse) Stop() Beat {
	close(p.stop)
	p.sender.Wait()
	end := time.Now()
	for time.Since(end) < settled && !p.whole() {
		time.Sleep(time.Millisecond)
	}
	p.conn.Close()
	p.reader.Wait()
	if !p.whole() && p.last.Before(end) {
		p.beat.Gap = max(p.beat.Gap, end.Sub(p.last)) // nothing came any more
	}
	p.beat.Lost = p.beat.Sent - uint64(len(p.seen))
	return p.beat
}

func (p *Pulse) whole() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(len(p.seen)) == p.beat.Sent
}

func listenUDP(netns string, at netip.AddrPort) (conn *net.UDPConn, err error) {
	network := "udp4"
	if at.Addr().Is6() {
		network = "udp6"
	}
	err = host.InNetns(netns, func() (err error) {
		conn, err = net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("receive at %s: %w", at, err)
	}
	return conn, nil
}
