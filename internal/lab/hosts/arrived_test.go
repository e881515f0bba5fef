package hosts

import (
	"io"
	"net"
	"testing"
)

// TestArrived sends a mebibyte over a wire of 40 segments a packet: the host counts each by itself, where its device
// counts few.
func TestArrived(t *testing.T) {
	n := testNet(t)
	a, b := newTestHost(t, n, "a"), newTestHost(t, n, "b")
	far := Plug{b, "two", prefixes("10.1.0.2/24")}
	if err := Wire(Plug{a, "one", prefixes("10.1.0.1/24")}, far, 40); err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	err := b.do(func() (err error) {
		listener, err = net.Listen("tcp", "10.1.0.2:9")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	count := func() (arrived, counted uint64) {
		t.Helper()
		arrived, err := b.Arrived()
		if err != nil {
			t.Fatal(err)
		}
		counted, _, err = far.Received()
		if err != nil {
			t.Fatal(err)
		}
		return arrived, counted
	}
	arrived, counted := count()
	var conn net.Conn
	err = a.do(func() (err error) {
		conn, err = net.Dial("tcp", "10.1.0.2:9")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const size, segment = 1 << 20, 1448
	go func() {
		_, _ = conn.Write(make([]byte, size))
		conn.Close()
	}()
	if got, err := io.Copy(io.Discard, in); err != nil || got != size {
		t.Fatalf("%d bytes, %v", got, err)
	}
	after, countedAfter := count()
	// A handshake and an end are three packets, and slow start may fill some segments less than others.
	arrived, counted = after-arrived, countedAfter-counted
	if arrived < size/segment || arrived > size/segment*5/4 || counted > arrived/2 {
		t.Errorf("%d packets arrived, of which the device counts %d: want %d to %d, and half of that at most", arrived, counted, size/segment, size/segment*5/4)
	}
}

func TestNetstat(t *testing.T) {
	const text = "TcpExt: SyncookiesSent TW\nTcpExt: 1 2\nIpExt: InNoRoutes InCEPkts ReasmOverlaps\nIpExt: 3 4 5\n"
	for name, want := range map[string]uint64{"InNoRoutes": 3, "InCEPkts": 4} {
		if got, err := netstat([]byte(text), "IpExt:", name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for _, name := range []string{"TW", "nothing"} {
		if _, err := netstat([]byte(text), "IpExt:", name); err == nil {
			t.Errorf("%s is found", name)
		}
	}
}
