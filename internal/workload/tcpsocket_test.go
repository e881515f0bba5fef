package workload

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// stuffed opens a connection over loopback of which neither end reads, and writes all
// that it takes into both: the accepted end's descriptor is closed with the test as well.
func stuffed(t *testing.T, family, protocol int) (listener, client, server int) {
	t.Helper()
	loopback := map[int]unix.Sockaddr{
		unix.AF_INET:  &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}},
		unix.AF_INET6: &unix.SockaddrInet6{Addr: [16]byte{15: 1}},
	}
	open := func() int {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	listener, client = open(), open()
	check(unix.Bind(listener, loopback[family]))
	check(unix.Listen(listener, 8))
	name, err := unix.Getsockname(listener)
	check(err)
	check(unix.Connect(client, name))
	server, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	check(err)
	t.Cleanup(func() { unix.Close(server) })
	stuff(t, client)
	stuff(t, server)
	return listener, client, server
}

// stuff writes until nothing more is taken for a while.
func stuff(t *testing.T, fd int) {
	t.Helper()
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for last := time.Now(); time.Since(last) < 50*time.Millisecond; {
		if n, err := unix.Write(fd, make([]byte, 64<<10)); n > 0 {
			last = time.Now()
		} else if err != unix.EAGAIN {
			t.Fatal(err)
		}
	}
}

// tcpSockets lists the sockets of the namespace, and is sorted.
func tcpSockets(t *testing.T) []TCPSocket {
	t.Helper()
	all, err := TCPSockets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b TCPSocket) int {
		return cmp.Or(a.Local.Compare(b.Local), a.Remote.Compare(b.Remote))
	})
	return all
}

// Every figure is what ss reads by its own decoder, and the sockets are those of the
// process that made them.
func TestTCPSockets(t *testing.T) {
	testutil.Needs(t, "root", "ss")
	testutil.Netns(t)
	owned := map[uint64]bool{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		listener, client, server := stuffed(t, family, unix.IPPROTO_TCP)
		for _, fd := range []int{listener, client, server} {
			owned[inodeOf(t, fd)] = true
		}
	}
	for try := range 100 {
		before := tcpSockets(t)
		out := testutil.Output(t, "ss", "--tcp", "--all", "--numeric", "--memory", "--no-header", "--oneline")
		if !reflect.DeepEqual(before, tcpSockets(t)) { // something was still on its way
			if try == 99 {
				t.Fatal("the sockets do not come to rest")
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		sameAsSS(t, before, out)
		var sum plan.SocketMemory
		for _, s := range before {
			if sum = sum.Plus(s.Memory); !owned[s.Inode] || s.MPTCP || !s.Accepted() {
				t.Errorf("%+v is not of this test", s)
			}
			delete(owned, s.Inode)
			if !s.Listens() && (s.Unread < 64<<10 || s.Unacked < 64<<10 || s.Memory.Receive < s.Unread || s.Memory.Send == 0) {
				t.Errorf("%+v: no end of it was read", s)
			}
		}
		if len(owned) != 0 {
			t.Errorf("sockets with inodes %v are missing", owned)
		}
		if host, err := TCPMemory(); err != nil || host.Used+1<<20*uint64(runtime.NumCPU()) < sum.Held() {
			t.Errorf("the sockets hold %d bytes, all of the host %+v (%v)", sum.Held(), host, err)
		}
		return
	}
}

// A line of ss: state, two queues, two ends, and what the kernel calls skmem.
var ssLine = regexp.MustCompile(`^(\S+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+skmem:\(r(\d+),rb(\d+),t\d+,tb(\d+),f(\d+),w(\d+),`)

func sameAsSS(t *testing.T, all []TCPSocket, out string) {
	t.Helper()
	states := map[string]string{"LISTEN": "listen", "ESTAB": "established", "CLOSE-WAIT": "close-wait", "FIN-WAIT-1": "fin-wait-1"}
	var want, have []string
	for line := range strings.Lines(out) {
		m := ssLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("ss says %q", line)
		}
		if m[1] == "LISTEN" { // its queue is of connections
			m[2], m[3] = "0", "0"
		}
		n := func(i int) uint64 {
			v, err := strconv.ParseUint(m[i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		want = append(want, fmt.Sprintln(states[m[1]], n(2), n(3), m[4], strings.Replace(m[5], ":*", ":0", 1), n(6)+n(9)+n(10), n(6), n(7), n(10), n(8)))
	}
	for _, s := range all {
		remote := s.Remote.String()
		if !s.Remote.IsValid() {
			remote = map[bool]string{true: "0.0.0.0:0", false: "[::]:0"}[s.Local.Addr().Is4()]
		}
		have = append(have, fmt.Sprintln(s.State, s.Unread, s.Unacked, s.Local, remote, s.Memory.Held(), s.Memory.Receive, s.ReceiveBuffer, s.Memory.Send, s.SendBuffer))
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("have\n%s\nss says\n%s", strings.Join(have, ""), strings.Join(want, ""))
	}
}

// Connections that nobody has accepted, and those that their process has closed, have no
// inode and hold what they hold; what only waits for late packets is left out.
func TestTCPSocketsOfNobody(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	testutil.Netns(t)
	listener := listen(t, 4711)
	dial := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 4711, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		return fd
	}
	idle := dial()
	accepted, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(idle) // it has ended on this side, and waits for the other
	unix.Close(accepted)
	client := dial()
	stuff(t, client)
	unix.Close(client) // what it has written still has to go
	var waits, orphan *TCPSocket
	for _, s := range tcpSockets(t) {
		switch {
		case s.State == "time-wait":
			t.Errorf("%+v has no buffers", s)
		case s.Local.Port() == 4711 && !s.Accepted():
			waits = &s
		case s.Remote.Port() == 4711 && s.Inode == 0:
			orphan = &s
		}
	}
	if waits == nil || waits.State != "established" || waits.Memory.Receive < 64<<10 || waits.Unread < 64<<10 {
		t.Errorf("the connection that waits for accept: %+v", waits)
	}
	if orphan == nil || orphan.State != "fin-wait-1" || orphan.Memory.Send < 64<<10 || !orphan.Accepted() {
		t.Errorf("the connection that was closed: %+v", orphan)
	}
	if waits != nil && orphan != nil && (waits.Cgroup == 0 || waits.Cgroup != orphan.Cgroup) {
		t.Errorf("cgroups %d and %d, want this test's", waits.Cgroup, orphan.Cgroup)
	}
}

// A connection of MPTCP holds memory of TCP beside its subflows, which have its inode. Where
// the kernel lacks mptcp_diag, nothing but these can be seen.
func TestTCPSocketsOfMPTCP(t *testing.T) {
	testutil.Needs(t, "root", "MPTCP")
	testutil.Netns(t)
	_, client, _ := stuffed(t, unix.AF_INET, unix.IPPROTO_MPTCP)
	inode := inodeOf(t, client)
	connections, subflows := 0, 0
	for _, s := range tcpSockets(t) {
		switch {
		case s.Inode != inode:
		case s.MPTCP && s.Memory.Held() > 64<<10:
			connections++
		case !s.MPTCP:
			subflows++
		}
	}
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	want := 1
	if _, err := (diagQuestion{family: unix.AF_INET, protocol: unix.IPPROTO_MPTCP}).ask(conn); errors.Is(err, errors.ErrUnsupported) {
		want = 0
	}
	if connections != want || subflows != 1 {
		t.Errorf("%d connections and %d subflows, want %d and one, in %+v", connections, subflows, want, tcpSockets(t))
	}
}

func TestParseTCPRefuses(t *testing.T) {
	for _, data := range [][]byte{nil, make([]byte, diagMessageSize-1), append(make([]byte, diagMessageSize), 9, 0, 1, 0)} {
		if s, _, err := parseTCP(data); err == nil {
			t.Errorf("%d bytes were read as %+v", len(data), s)
		}
	}
	short := append(make([]byte, diagMessageSize), 8, 0, inetDiagSkMeminfo, 0, 1, 0, 0, 0)
	short[1] = 200
	if s, full, err := parseTCP(short); err != nil || full || s.State != "unknown" {
		t.Errorf("an array that is too short, and a state to come: %+v, %v, %v", s, full, err)
	}
}

// What maps have of a socket is read by their ids, whatever else the kernel tells.
func TestParseStored(t *testing.T) {
	attributes := netlink.NewAttributeEncoder()
	attributes.Nested(inetDiagStored, func(all *netlink.AttributeEncoder) error {
		for id, value := range map[uint32]string{7: "seven", 9: "nine"} {
			all.Nested(1, func(one *netlink.AttributeEncoder) error { // SK_DIAG_BPF_STORAGE
				one.Uint32(2, id)
				one.Bytes(1, nil) // padding
				one.Bytes(3, []byte(value))
				return nil
			})
		}
		all.Uint32(99, 1)
		return nil
	})
	text, err := attributes.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := parseTCP(append(make([]byte, diagMessageSize), text...))
	if want := (Stored{7: []byte("seven"), 9: []byte("nine")}); err != nil || !reflect.DeepEqual(s.Stored, want) {
		t.Errorf("%v, %v", s.Stored, err)
	}
}
