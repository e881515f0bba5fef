package testutil

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestVeth(t *testing.T) {
	a, b := NewNamespace(t), NewNamespace(t)
	left, right := Veth(t, a, b, VethOptions{Queues: 4})
	out := a.Output(Tool(t, "ip"), "-details", "-oneline", "link", "show", left.Name)
	for _, want := range []string{"veth", "numtxqueues 4", "numrxqueues 4", "LOWER_UP"} {
		if !strings.Contains(out, want) {
			t.Errorf("ip does not show %q in %s", want, out)
		}
	}
	for _, end := range []struct{ from, to string }{
		{left.IPv4.Addr().String(), right.IPv4.Addr().String()},
		{left.IPv6.Addr().String(), right.IPv6.Addr().String()},
	} {
		echo(t, a, b, end.to, end.from)
	}
}

// echo opens a TCP connection to an address of b at once, with no time for
// duplicate address detection, and asks it who came.
func echo(t *testing.T, a, b *Namespace, addr, want string) {
	t.Helper()
	var l net.Listener
	var err error
	b.Do(func() { l, err = net.Listen("tcp", net.JoinHostPort(addr, "0")) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			c.Close()
			got <- host
		}
	}()
	a.Do(func() {
		var c net.Conn
		if c, err = net.DialTimeout("tcp", l.Addr().String(), 5*time.Second); err == nil {
			c.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if from := <-got; from != want {
		t.Errorf("the connection came from %s, want %s", from, want)
	}
}
