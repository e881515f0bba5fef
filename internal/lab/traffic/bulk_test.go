package traffic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

func TestCopyIsPacedAndTimed(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	// 5 MB at 100 Mbit/s take 0.4 s, and on a busy machine longer.
	start := time.Now()
	took, err := Copy(context.Background(), Where{Netns: ns.Path(), To: local(22), Pace: 100e6}, 5_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if around := time.Since(start); took < 350*time.Millisecond || took > around {
		t.Errorf("it took %s of %s", took, around)
	}
}

func TestCopyCancelled(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
	_, err := Copy(ctx, Where{Netns: ns.Path(), To: local(22), Pace: 8e6}, 1<<40)
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestCopyRefused(t *testing.T) {
	ns := testutil.NewNamespace(t)
	_, err := Copy(context.Background(), Where{Netns: ns.Path(), To: local(9)}, 1)
	if err == nil || !strings.HasPrefix(err.Error(), "connect to 127.0.0.1:9: ") {
		t.Errorf("got %v", err)
	}
}

func TestSendUntilStop(t *testing.T) {
	ns := testutil.NewNamespace(t)
	s := serve(t, ns.Path(), 5201)
	streams, err := Send(context.Background(), Where{Netns: ns.Path(), To: local(5201), Pace: 50e6}, 2)
	if err != nil {
		t.Fatal(err)
	}
	start, before := time.Now(), s.Bytes()
	time.Sleep(400 * time.Millisecond)
	mbit := float64(s.Bytes()-before) * 8 / 1e6 / time.Since(start).Seconds()
	sent := streams.Stop()
	if mbit <= 0 || mbit > 120 {
		t.Errorf("two streams of 50 Mbit/s delivered %.1f", mbit)
	}
	if sent == 0 {
		t.Error("nothing was sent")
	}
	time.Sleep(20 * time.Millisecond)
	after := s.Bytes()
	time.Sleep(100 * time.Millisecond)
	if s.Bytes() != after {
		t.Error("bytes arrive after the stop")
	}
}

// TestRetransmits: a queue that is too short for two streams makes TCP send again,
// and TCP itself counts that, in a worker too.
func TestRetransmits(t *testing.T) {
	testutil.Needs(t, "tbf qdisc")
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 5201)
	w, err := StartWorker(ns.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx := context.Background()
	if err := w.Send(ctx, Where{To: local(5201), Pace: 20e6}, 2); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Retransmits(ctx); err != nil || n != 0 {
		t.Errorf("without a loss %d segments were sent again, %v", n, err)
	}
	ns.Output("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "5mbit", "burst", "70000", "limit", "70000")
	again := uint64(0)
	for range 100 {
		if again, err = w.Retransmits(ctx); err != nil || again > 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil || again == 0 {
		t.Errorf("%d segments were sent again, %v", again, err)
	}
	if _, err := w.Stop(ctx); err != nil {
		t.Error(err)
	}
	if n, err := w.Retransmits(ctx); err != nil || n != 0 {
		t.Errorf("after the stop %d segments, %v", n, err)
	}
}
