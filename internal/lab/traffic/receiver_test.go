package traffic

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// TestReceiver: what streams and datagrams bring is counted, by a worker as well.
func TestReceiver(t *testing.T) {
	ns := testutil.NewNamespace(t)
	w, err := StartWorker(ns.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx := context.Background()
	if err := w.Receive(ctx, local(5201)); err != nil {
		t.Fatal(err)
	}
	where := Where{Netns: ns.Path(), To: local(5201), Pace: 50e6}
	s, err := Send(ctx, where, 3)
	if err != nil {
		t.Fatal(err)
	}
	got := receives(t, w, func(r Received) bool {
		for _, bytes := range r.Each {
			if bytes == 0 {
				return false
			}
		}
		return len(r.Each) == 3
	})
	if sent := s.Stop(); got.Packets == 0 || got.Bytes > sent+3 {
		t.Errorf("%d bytes of TCP were sent, %+v received", sent, got)
	}
	before := receives(t, w, func(r Received) bool { return len(r.Each) == 0 })
	f, err := StartFlood(Where{Netns: ns.Path(), To: local(5201), Pace: 10e6}, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	after := receives(t, w, func(r Received) bool { return r.Packets >= before.Packets+10 })
	sent, err := f.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if n := after.Packets - before.Packets; n > sent || after.Bytes-before.Bytes != 1000*n {
		t.Errorf("%d datagrams of 1000 bytes were sent, %d received with %d bytes", sent, n, after.Bytes-before.Bytes)
	}
}

// TestReceiverFindsPeerGone: a peer that is gone without a word, as where its reset was lost, is missed soon.
func TestReceiverFindsPeerGone(t *testing.T) {
	ns := testutil.NewNamespace(t)
	w, err := StartWorker(ns.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Receive(t.Context(), local(5201)); err != nil {
		t.Fatal(err)
	}
	conn, err := Where{Netns: ns.Path(), To: local(5201)}.dialPlain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	receives(t, w, func(r Received) bool { return len(r.Each) == 1 })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// A socket that is being repaired ends without telling its peer.
	if err := onSocket(raw, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	receives(t, w, func(r Received) bool { return len(r.Each) == 0 })
}

// receives waits until a worker has received what it is to.
func receives(t *testing.T, w *Worker, enough func(Received) bool) Received {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r, err := w.Received(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if enough(r) {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("received %+v", r)
		}
	}
}
