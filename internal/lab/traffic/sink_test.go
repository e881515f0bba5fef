package traffic

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/testutil"
)

// TestSinkTakesNothing: a datagram comes to the socket and never into it.
func TestSinkTakesNothing(t *testing.T) {
	ns := testutil.NewNamespace(t)
	sink, err := OpenSink(ns.Path(), local(9))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	var conn net.Conn
	if err := host.InNetns(ns.Path(), func() (err error) {
		conn, err = net.Dial("udp", local(9).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if arrived(ns) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := arrived(ns); got != 1 {
		t.Errorf("%d datagrams arrived", got)
	}
	_ = sink.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, _, err := sink.conn.ReadFrom(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it took %d bytes, %v", n, err)
	}
	if _, err := OpenSink(ns.Path(), local(9)); err == nil || !strings.HasPrefix(err.Error(), "open sink at 127.0.0.1:9: ") {
		t.Errorf("a port twice: %v", err)
	}
}
