package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
)

// Datagrams says what Blast sends.
type Datagrams struct {
	Size      int           // bytes of payload of each packet
	PerSecond int           // packets a second
	For       time.Duration // how long to send
}

// Blast sends UDP packets at a rate and returns how many the kernel took. They
// go out in batches of a millisecond; what a late timer missed follows at once,
// but no more than 20 ms of it.
func Blast(ctx context.Context, w Where, d Datagrams) (sent uint64, err error) {
	var conn net.Conn
	err = host.InNetns(w.Netns, func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "udp", w.To.String())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("connect to %s: %w", w.To, err)
	}
	defer conn.Close()
	packet := make([]byte, d.Size)
	duration := min(d.For, Limit)
	start, due := time.Now(), 0.0
	last := start
	for {
		if !sleep(ctx, time.Millisecond) {
			return sent, fmt.Errorf("send to %s: %w", w.To, context.Cause(ctx))
		}
		now := time.Now()
		if now.Sub(start) > duration {
			return sent, nil
		}
		due += min(now.Sub(last), 20*time.Millisecond).Seconds() * float64(d.PerSecond)
		last = now
		for ; due >= 1; due-- {
			_, err := conn.Write(packet)
			switch {
			case err == nil:
				sent++
			case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ECONNREFUSED):
				// Dropped at the queue, or nobody listens: both are what a
				// sender of datagrams has to live with.
			default:
				return sent, fmt.Errorf("send to %s: %w", w.To, err)
			}
		}
	}
}

// A Counter receives UDP packets on one port and counts them.
type Counter struct {
	conn    *net.UDPConn
	packets atomic.Uint64
	bytes   atomic.Uint64
	wg      sync.WaitGroup
}

// Count starts a counter in a namespace.
func Count(netns string, at netip.AddrPort) (*Counter, error) {
	c := &Counter{}
	err := host.InNetns(netns, func() (err error) {
		c.conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", at, err)
	}
	c.wg.Go(func() {
		data := make([]byte, 64<<10)
		for {
			n, err := c.conn.Read(data)
			if err != nil {
				return
			}
			c.packets.Add(1)
			c.bytes.Add(uint64(n))
		}
	})
	return c, nil
}

// Packets is the number of packets received so far.
func (c *Counter) Packets() uint64 { return c.packets.Load() }

// Bytes is their payload.
func (c *Counter) Bytes() uint64 { return c.bytes.Load() }

// Close ends the counter and waits for it.
func (c *Counter) Close() error {
	err := c.conn.Close()
	c.wg.Wait()
	return err
}
