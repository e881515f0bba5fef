package traffic

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// TestAlternate: both ports of a loopback get about as much, and as many turns as were asked for.
func TestAlternate(t *testing.T) {
	ns := testutil.NewNamespace(t)
	for _, port := range []uint16{9, 10} {
		sink, err := OpenSink(ns.Path(), local(port))
		if err != nil {
			t.Fatal(err)
		}
		defer sink.Close()
	}
	w, err := StartWorker(ns.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	turns := Turns{Rounds: 10, Slice: 5 * time.Millisecond}
	begin := time.Now()
	if err := w.Alternate(context.Background(), Where{To: local(9)}, Where{To: local(10)}, 2, 64, turns); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("20 turns of 5 ms took %v", took)
	}
	if arrived(ns)+dropped(t, ns.Path()) == 0 {
		t.Error("nothing was sent")
	}
}

func TestAlternateWithoutSink(t *testing.T) {
	ns := testutil.NewNamespace(t)
	err := Alternate(Where{Netns: ns.Path(), To: local(9)}, Where{Netns: ns.Path(), To: local(10)}, 1, 64, Turns{Rounds: 1, Slice: time.Second})
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody takes it: %v", err)
	}
}
