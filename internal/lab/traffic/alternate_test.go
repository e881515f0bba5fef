package traffic

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

// slow takes 100 us for each datagram, and notes whose it is where the one before was another's.
type slow struct {
	net.Conn
	name  int
	order *[]int
}

func (s slow) Write(data []byte) (int, error) {
	time.Sleep(100 * time.Microsecond)
	if n := len(*s.order); n == 0 || (*s.order)[n-1] != s.name {
		*s.order = append(*s.order, s.name)
	}
	return len(data), nil
}

// TestAlternateTakesTurns: who was last in a round is the first in the next, so that no tick of the kernel's meets one alone.
func TestAlternateTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []int
		a, begin := alternating{slow{name: 0, order: &order}, slow{name: 1, order: &order}}, time.Now()
		if err := a.pump(nil, begin, Turns{Rounds: 3, Slice: 16 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 1, 0, 1}; !slices.Equal(order, want) {
			t.Errorf("3 rounds of two went %v, want %v", order, want)
		}
		if took := time.Since(begin); took != 6*16*time.Millisecond {
			t.Errorf("6 turns of 16 ms took %v", took)
		}
	})
}
