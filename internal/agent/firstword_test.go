package agent

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// TestFirstWord has a client say one byte, as those do that begin with a greeting: it is paced for full segments, and not
// for packets that are headers but for a byte, by which the first full one would wait for as long as 67 take.
func TestFirstWord(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const limit = 8e6
	for promise, full := range map[string]float64{
		"max: 8Mbit": limit * 1448 / 1514,
		"pps: 1000":  1000 * 1448 * 8,
	} {
		t.Run(promise, func(t *testing.T) {
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			var server net.Listener
			var err error
			b.there.Do(func() { server, err = net.Listen("tcp4", netip.AddrPortFrom(b.far.IPv4.Addr(), 5201).String()) })
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			heard := make(chan error, 1)
			go func() {
				conn, err := server.Accept()
				if err != nil {
					heard <- err
					return
				}
				defer conn.Close()
				_, err = io.ReadFull(conn, make([]byte, 1))
				heard <- err
				_, _ = io.Copy(io.Discard, conn) // until the client ends
			}()
			b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %s}], egress: {%s}}}\n", b.link.Name, group, promise))
			start(t, b.here, dir, nil, "python3", "-c", "import socket, sys, time; c = socket.create_connection((sys.argv[1], 5201)); c.send(b'x'); time.sleep(60)", b.far.IPv4.Addr().String())
			select {
			case err := <-heard:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("nothing was said")
			}
			var paces []float64
			for range 100 { // until TCP knows that it was heard
				if paces = b.maxPaces(t); len(paces) == 1 && paces[0] > 0.99*full {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if len(paces) != 1 || paces[0] < 0.99*full || paces[0] > 1.01*full {
				t.Errorf("paced at %v bit/s, want %.0f", paces, full)
			}
		})
	}
}
