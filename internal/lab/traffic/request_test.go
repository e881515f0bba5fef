package traffic

import (
	"context"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

func TestAsk(t *testing.T) {
	ns := testutil.NewNamespace(t)
	s := serve(t, ns.Path(), 22)
	h, err := Ask(context.Background(), Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 100, Every: 10 * time.Millisecond, For: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if n := h.TotalCount(); n != 20 {
		t.Errorf("%d requests in 200 ms, want 20", n)
	}
	if got := s.Bytes(); got < 20*100+1 || got > 20*100+2 {
		t.Errorf("%d bytes arrived, want 20 requests of 100, the verb, and perhaps the end", got)
	}
	if p50 := time.Duration(h.ValueAtQuantile(50)); p50 <= 0 {
		t.Errorf("median latency on loopback %s", p50)
	}
}

// TestAskDuringStall: a server that is silent once delays all requests that are due
// meanwhile, and each tells of it.
func TestAskDuringStall(t *testing.T) {
	ns := testutil.NewNamespace(t)
	listener, err := listenTCP(ns.Path(), local(22), large)
	if err != nil {
		t.Fatal(err)
	}
	const n, every = 50, 2 * time.Millisecond
	var served sync.WaitGroup
	served.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		data := make([]byte, 1+n)
		if _, err := io.ReadFull(conn, data); err != nil { // all of them, before the first answer
			t.Errorf("requests wait for answers: %v", err)
			return
		}
		if _, err := conn.Write(data[1:]); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	h, err := Ask(ctx, Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 1, Every: every, For: n * every})
	listener.Close()
	served.Wait()
	if err != nil {
		t.Fatal(err)
	}
	// No answer came before the last request was due.
	for _, q := range []float64{1, 50, 99} {
		first := int(math.Ceil(n * (1 - q/100))) // that waited as long as that, at the latest
		if got, least := time.Duration(h.ValueAtQuantile(q)), time.Duration(n-1-first)*every; got < least {
			t.Errorf("%g %% took %s, want %s at least", q, got, least)
		}
	}
	if h.TotalCount() != n {
		t.Errorf("%d requests were answered, want %d", h.TotalCount(), n)
	}
}

func TestAskHungUpOn(t *testing.T) {
	ns := testutil.NewNamespace(t)
	listener, err := listenTCP(ns.Path(), local(22), large)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	a, err := Connect(context.Background(), Where{Netns: ns.Path(), To: local(22)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := a.Ask(context.Background(), Requests{Size: 1, Every: time.Second, For: time.Minute}); err == nil {
		t.Error("no error")
	}
	if _, err := a.Ask(context.Background(), Requests{Size: 1, For: time.Second}); err == nil || !strings.Contains(err.Error(), "0s from one request to the next") {
		t.Errorf("all at once: %v", err)
	}
}

func TestAskCancelled(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 1, Every: time.Second, For: time.Minute}); err == nil {
		t.Error("no error")
	}
}
