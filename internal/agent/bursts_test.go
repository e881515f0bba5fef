package agent

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// burstsAndGreed opens five connections that send 14 segments every 17 ms, and two that send all the time.
const burstsAndGreed = `
import socket, sys, threading, time
def connect():
    return socket.create_connection((sys.argv[1], int(sys.argv[2])))
def greedy(c):
    while True:
        c.sendall(bytes(1 << 16))
def bursts(c, begin):
    while True:
        time.sleep(max(0, begin - time.monotonic()))
        c.sendall(bytes(14 * 1448))
        begin += 0.017
now = time.monotonic() + 0.1
for i in range(5):
    threading.Thread(target=bursts, args=(connect(), now + i * 0.017 / 5)).start()
for i in range(2):
    threading.Thread(target=greedy, args=(connect(),)).start()
`

// counts are the bytes of each connection so far, by the client's address.
func (s *sink) counts() map[string]uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := map[string]uint64{}
	for client, n := range s.bytes {
		all[client] = n.Load()
	}
	return all
}

// TestBursts: what connections that send in bursts leave of a limit others have.
func TestBursts(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const limit, over = 100e6, 3 * time.Second
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	s := b.sink(t)
	b.apply(t, b.limited(group, "100Mbit"))
	start(t, b.here, dir, nil, "python3", "-c", burstsAndGreed, b.far.IPv4.Addr().String(), strconv.Itoa(s.Addr().(*net.TCPAddr).Port))
	time.Sleep(2 * time.Second)
	part := func(bytes uint64) float64 { return float64(bytes) * 8 * 1514 / 1448 / over.Seconds() / limit }
	var greedy, rest float64
	for range 4 { // a busy machine's senders may have less
		before := s.counts()
		time.Sleep(over)
		var each []uint64
		for client, bytes := range s.counts() {
			each = append(each, bytes-before[client])
		}
		slices.Sort(each)
		if len(each) != 7 {
			t.Fatalf("%d connections", len(each))
		}
		greedy, rest = 0, 0
		for i, bytes := range each {
			if i < 5 {
				rest += part(bytes)
			} else {
				greedy += part(bytes)
			}
		}
		t.Logf("two greedy ones have %.3f of the limit, and five that send in bursts %.3f", greedy, rest)
		if greedy+rest > 0.97 && greedy+rest < 1.01 {
			return
		}
	}
	t.Errorf("of the limit %.3f is used", greedy+rest)
}
