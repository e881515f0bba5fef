package traffic

import (
	"io"
	"net"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestGreet(t *testing.T) {
	ns := testutil.NewNamespace(t)
	g, err := Greet(ns.Path(), local(80), "data")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var conn net.Conn
		ns.Do(func() { conn, err = net.Dial("tcp", local(80).String()) })
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(conn); err != nil || string(said) != "data" {
			t.Errorf("it says %q, %v", said, err)
		}
		conn.Close()
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
