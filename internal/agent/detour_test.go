package agent

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// ifbAt is a policy that queues what arrives by a link, in Mbit/s.
func ifbAt(link string, mbit int) string {
	return fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none, ingress: {max: %dMbit, method: ifb}}}\n", link, mbit)
}

// TestDetourKeeps: what arrives has its limit, by the receiver's count: of datagrams at
// three times as many, of one flow and of eight. Few segments are sent twice, since they
// wait; what a small packet waits beside them is bounded by the queue.
func TestDetourKeeps(t *testing.T) {
	needsMethod(t, policy.MethodIfb)
	testutil.Needs(t, "iperf3")
	limit, least := 50, 0.98
	if testing.Short() { // an emulated CPU has few datagrams, and is not always there when it is its turn
		limit, least = 8, 0.5
	}
	b := newBench(t)
	b.apply(t, ifbAt(b.link.Name, limit))
	for i, c := range []struct {
		name, args string
		onWire     float64
		twice      float64 // part of the segments, at most
	}{
		{"UDP", fmt.Sprintf("--udp --bitrate %dM --length 1400", 3*limit), datagramWire, 0},
		{"one flow", "--congestion cubic", segmentWire, 0.02},
		{"eight flows", "--congestion cubic --parallel 8", segmentWire, 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			port := 5201 + i
			iperfServerIn(t, b.here, b.dir, port)
			for range 3 { // a busy machine's sender may have less
				stop := b.smallPackets(t)
				rate, twice := b.arrives(t, port, strings.Fields(c.args)...)
				waits := stop()
				t.Logf("%.3f of %d Mbit/s; %.4f of the segments were sent twice; small packets waited %v, one in a hundred %v",
					rate*c.onWire, limit, twice, waits[len(waits)/2], waits[len(waits)*99/100])
				if rate*c.onWire > 1.01*float64(limit) {
					t.Errorf("%.2f Mbit/s arrived", rate*c.onWire)
				}
				// Two packets of 64 KiB wait at most, and one is on its way.
				if most := time.Duration(3*64<<10*8/limit) * time.Microsecond; waits[len(waits)/2] > most {
					t.Errorf("half of the small packets waited longer than %v", most)
				}
				if twice > c.twice && !testing.Short() {
					t.Errorf("%.4f of the segments were sent twice", twice)
				}
				if rate*c.onWire >= least*float64(limit) {
					return
				}
			}
			t.Error("less than the limit arrived")
		})
	}
	s := status(t, b.Agent)
	if !s.OK || len(s.Promises) != 1 || s.Promises[0].Traffic.Bytes < 4*uint64(limit)*1e6/8 {
		t.Errorf("status: %+v", s)
	}
}

// arrives has the far end send for five seconds, or two in short runs, and returns what the
// receiver got, in Mbit/s of payload, and which part of the segments was sent twice.
func (b *bench) arrives(t *testing.T, port int, args ...string) (mbit, twice float64) {
	t.Helper()
	seconds := 5
	if testing.Short() {
		seconds = 2
	}
	var out strings.Builder
	cmd := start(t, b.there, "", &out, "iperf3", append([]string{"--client", b.link.IPv4.Addr().String(), "--port", strconv.Itoa(port),
		"--omit", "2", "--time", strconv.Itoa(seconds), "--json"}, args...)...)
	wait(t, cmd, &out)
	var said struct {
		End struct {
			Sent struct {
				Bytes       float64 `json:"bytes"`
				Retransmits float64 `json:"retransmits"`
			} `json:"sum_sent"`
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out.String()), &said); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return said.End.Received.BitsPerSecond / 1e6, said.End.Sent.Retransmits * 1448 / said.End.Sent.Bytes
}

// smallPackets sends a datagram every few milliseconds from the far end, until the function
// that it returns is called: that has how long each took, the shortest first.
func (b *bench) smallPackets(t *testing.T) (stop func() []time.Duration) {
	t.Helper()
	var sink net.PacketConn
	var source net.Conn
	var err error
	b.here.Do(func() { sink, err = net.ListenPacket("udp4", "0.0.0.0:0") })
	if err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(b.link.IPv4.Addr(), uint16(sink.LocalAddr().(*net.UDPAddr).Port))
	b.there.Do(func() { source, err = net.Dial("udp4", to.String()) })
	if err != nil {
		t.Fatal(err)
	}
	begin, ended, arrived := time.Now(), make(chan struct{}), make(chan []time.Duration)
	go func() {
		for {
			select {
			case <-ended:
				source.Close()
				return
			case <-time.After(3 * time.Millisecond):
				_, _ = source.Write(binary.NativeEndian.AppendUint64(nil, uint64(time.Since(begin))))
			}
		}
	}()
	go func() {
		var took []time.Duration
		for buf := make([]byte, 8); ; {
			if _, _, err := sink.ReadFrom(buf); err != nil {
				arrived <- took
				return
			}
			took = append(took, time.Since(begin)-time.Duration(binary.NativeEndian.Uint64(buf)))
		}
	}()
	return func() []time.Duration {
		t.Helper()
		close(ended)
		sink.Close()
		took := <-arrived
		if len(took) < 50 {
			t.Fatalf("only %d small packets arrived", len(took))
		}
		slices.Sort(took)
		return took
	}
}

// TestDetourForwards: what a router passes on is held as well, and the link counts each
// packet once; IPv6, ARP and neighbours' answers pass.
func TestDetourForwards(t *testing.T) {
	needsMethod(t, policy.MethodIfb)
	testutil.Needs(t, "ip", "iperf3")
	s := newStreet(t)
	applyText(t, s.Agent, ifbAt(s.in.Name, 8))
	s.router.Output("ip", "neigh", "flush", "all")
	iperfServer(t, s.server, 5201)
	for range 3 {
		before := s.arrived(t)
		rate := received(t, s.client, "", s.target.IPv4.Addr(), 2, "--congestion", "cubic")() * segmentWire
		got := s.arrived(t) - before
		t.Logf("%.2f of 8 Mbit/s; the link counted %d bytes", rate, got)
		if rate > 8*1.02 {
			t.Errorf("%.2f Mbit/s were forwarded", rate)
		}
		if most := 8e6 / 8 * 8.0; float64(got) > most {
			t.Errorf("the link counted %d bytes, want at most %.0f", got, most)
		}
		if rate > 8*0.9 {
			break
		}
	}
	if st := status(t, s.Agent); !st.OK || st.Promises[0].Traffic.Bytes == 0 {
		t.Errorf("status: %+v", st)
	}
	b := newBench(t)
	b.apply(t, ifbAt(b.link.Name, 8))
	for _, to := range []netip.Addr{b.link.IPv4.Addr(), b.link.IPv6.Addr()} {
		b.here.Output("ip", "neigh", "flush", "all")
		b.answers(t, netip.AddrPortFrom(to, 7007).String())
	}
}

// answers connects from the far end, and has what it sends come back.
func (b *bench) answers(t *testing.T, to string) {
	t.Helper()
	var l net.Listener
	var c net.Conn
	var err error
	b.here.Do(func() { l, err = net.Listen("tcp", to) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte("hello"))
			c.Close()
		}
	}()
	b.there.Do(func() { c, err = net.DialTimeout("tcp", to, 3*time.Second) })
	if err != nil {
		t.Fatalf("connect to %s: %v", to, err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(3 * time.Second))
	if n, err := c.Read(make([]byte, 8)); err != nil || n != 5 {
		t.Errorf("%s: %d bytes, %v", to, n, err)
	}
}

// arrived is how many bytes the kernel has counted that arrived by the way to the client.
func (s *street) arrived(t *testing.T) uint64 {
	t.Helper()
	var all []struct {
		Stats struct {
			Rx struct{ Bytes uint64 } `json:"rx"`
		} `json:"stats64"`
	}
	text := s.router.Output("ip", "-s", "-j", "link", "show", "dev", s.in.Name)
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	return all[0].Stats.Rx.Bytes
}
