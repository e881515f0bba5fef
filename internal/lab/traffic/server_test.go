package traffic

import (
	"context"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// TestBytesOutliveConnections: the count is TCP's while a connection lives, and
// ours afterwards; it must neither jump nor shrink between the two.
func TestBytesOutliveConnections(t *testing.T) {
	ns := testutil.NewNamespace(t)
	s := serve(t, ns.Path(), 22)
	where := Where{Netns: ns.Path(), To: local(22)}
	segments := uint64(0)
	for round := uint64(1); round <= 3; round++ {
		const size = 300_000
		if _, err := Copy(context.Background(), where, size); err != nil {
			t.Fatal(err)
		}
		// One byte more a connection says what it is, and the kernel counts its
		// end as another.
		if got, want := s.Bytes(), round*(size+2); got != want {
			t.Errorf("after %d copies %d bytes, want %d", round, got, want)
		}
		if got, least := s.Segments(), segments+size/(64<<10); got < least {
			t.Errorf("after %d copies %d segments, want %d at least", round, got, least)
		} else {
			segments = got
		}
	}
}

func TestCloseEndsBusyConnections(t *testing.T) {
	ns := testutil.NewNamespace(t)
	s, err := Serve(ns.Path(), local(22))
	if err != nil {
		t.Fatal(err)
	}
	streams, err := Send(context.Background(), Where{Netns: ns.Path(), To: local(22)}, 3)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it waits for streams that never end")
	}
	streams.Stop()
}
