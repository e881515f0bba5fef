package traffic

import (
	"context"
	"errors"
	"net/netip"
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

// TestResent: a queue that is too short for two streams makes TCP send again,
// and TCP itself counts that, in a worker too.
func TestResent(t *testing.T) {
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
	if n := resent(t, w); n != (Resent{}) {
		t.Errorf("without a loss %+v was sent again", n)
	}
	ns.Output("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "5mbit", "burst", "70000", "limit", "70000")
	eventually(t, "what was lost is sent again", func() bool {
		n := resent(t, w)
		return n.Segments > n.Needless
	})
	if _, err := w.Stop(ctx); err != nil {
		t.Error(err)
	}
	if n := resent(t, w); n != (Resent{}) {
		t.Errorf("after the stop %+v", n)
	}
}

func resent(t *testing.T, w *Worker) Resent {
	t.Helper()
	n, err := w.Resent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNeedless: where answers wait, TCP sends again what has arrived, and learns so.
func TestNeedless(t *testing.T) {
	testutil.Needs(t, "tbf qdisc")
	near, far := testutil.NewNamespace(t), testutil.NewNamespace(t)
	near.Output("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", far.Path())
	for ns, dev := range map[*testutil.Namespace][2]string{near: {"near", "10.99.0.1/24"}, far: {"far", "10.99.0.2/24"}} {
		ns.Output("ip", "addr", "add", dev[1], "dev", dev[0])
		ns.Output("ip", "link", "set", dev[0], "up")
	}
	to := netip.MustParseAddrPort("10.99.0.2:5201")
	s, err := Serve(far.Path(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := StartWorker(near.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Send(t.Context(), Where{To: to, Pace: 20e6}, 2); err != nil {
		t.Fatal(err)
	}
	far.Output("tc", "qdisc", "add", "dev", "far", "root", "tbf", "rate", "1kbit", "burst", "2000", "limit", "100000")
	eventually(t, "what waits for its answer is sent again", func() bool { return resent(t, w).Segments > 0 })
	far.Output("tc", "qdisc", "del", "dev", "far", "root")
	eventually(t, "the sender knows that it had arrived", func() bool { return resent(t, w).Needless > 0 })
	if n := resent(t, w); n.Needless > n.Segments {
		t.Errorf("%+v was sent again", n)
	}
}
