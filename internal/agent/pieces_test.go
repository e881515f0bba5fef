package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// pieces are the sizes of what arrives at the far end for a time, bytes on the wire, smallest first: what the sender's TCP
// handed to its device at once, as a veth does not cut it.
func (b *bench) pieces(t *testing.T, over time.Duration) (sizes []int) {
	t.Helper()
	all := bits.ReverseBytes16(unix.ETH_P_ALL)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		all = unix.ETH_P_ALL
	}
	b.there.Do(func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		wait := unix.NsecToTimeval(int64(100 * time.Millisecond))
		if err := errors.Join(
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: b.far.Index}),
		); err != nil {
			t.Error(err)
			return
		}
		head := make([]byte, 64)
		for begin := time.Now(); time.Since(begin) < over; {
			n, from, err := unix.Recvfrom(fd, head, unix.MSG_TRUNC)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				t.Error(err)
				return
			}
			if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype != unix.PACKET_OUTGOING {
				sizes = append(sizes, n)
			}
		}
	})
	if len(sizes) < 20 {
		t.Fatalf("%d packets arrived", len(sizes))
	}
	slices.Sort(sizes)
	return sizes
}

// TestPieces has TCP send to a near peer in pieces that its share gives in 4 ms, and no less than two segments, while it is
// below a limit, and in larger ones once it is not.
func TestPieces(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const segment = 1514
	for name, c := range map[string]struct {
		flows, mbit, most int
		end               func(b *bench)
	}{
		"eight flows, and a reset": {8, 10, 2 * segment, func(b *bench) {
			if err := b.Reset(context.Background()); err != nil {
				t.Error(err)
			}
		}},
		// 10,000 bytes in 4 ms.
		"one flow, and another's limit": {1, 20, 7 * segment, func(b *bench) { b.apply(t, b.limited(b.cgroup+"/other", "64Kbit")) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			b.iperfServer(t, 5201)
			b.apply(t, b.limited(group, fmt.Sprintf("%dMbit", c.mbit)))
			start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "60", "--parallel", fmt.Sprint(c.flows))
			untilBusy(t, b.rate)
			sizes := b.pieces(t, time.Second)
			if most := sizes[len(sizes)-1]; most > c.most || most < segment {
				t.Errorf("below a limit up to %d bytes were sent at once, want a segment to %d bytes", most, c.most)
			}
			c.end(b)
			b.untilPaced(t, func(pace float64) bool { return pace == 0 })
			if sizes = b.pieces(t, time.Second); sizes[len(sizes)-1] < 10*segment {
				t.Errorf("without a limit up to %d bytes were sent at once, want %d", sizes[len(sizes)-1], 10*segment)
			}
		})
	}
}
