package traffic

import (
	"context"
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
	// On a busy machine there may be fewer.
	n := uint64(h.TotalCount())
	if n == 0 || n > 20 {
		t.Errorf("%d requests in 200 ms, want 20", n)
	}
	if got := s.Bytes(); got < n*100+1 || got > n*100+2 {
		t.Errorf("%d bytes arrived, want %d requests of 100, the verb, and perhaps the end", got, n)
	}
	if p50 := time.Duration(h.ValueAtQuantile(50)); p50 <= 0 {
		t.Errorf("median latency on loopback %s", p50)
	}
}

func TestAskAsFastAsAnswered(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	h, err := Ask(context.Background(), Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 1, For: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if h.TotalCount() < 2 {
		t.Errorf("%d requests in 100 ms", h.TotalCount())
	}
}

// TestAskOfSlowServer: requests end in time though each takes as long as ten were
// to.
func TestAskOfSlowServer(t *testing.T) {
	ns := testutil.NewNamespace(t)
	listener, err := listenTCP(ns.Path(), local(22))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		data := make([]byte, 1)
		_, err = conn.Read(data) // the verb
		for err == nil {
			if _, err = conn.Read(data); err == nil {
				time.Sleep(20 * time.Millisecond)
				_, err = conn.Write(data)
			}
		}
	}()
	h, err := Ask(context.Background(), Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 1, Every: 2 * time.Millisecond, For: 100 * time.Millisecond})
	listener.Close()
	<-served
	if err != nil {
		t.Fatal(err)
	}
	if n := h.TotalCount(); n == 0 || n > 5 {
		t.Errorf("%d requests of 20 ms in 100 ms", n)
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
