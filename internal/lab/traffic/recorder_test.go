package traffic

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bytes atomic.Uint64
		start := time.Now()
		stop := make(chan struct{})
		go func() { // 1 MB/s for a second, then 3
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				if i < 1000 {
					bytes.Add(1000)
				} else {
					bytes.Add(3000)
				}
			}
		}()
		recorder := Record(50*time.Millisecond, bytes.Load, func() uint64 { return 2 * bytes.Load() })
		time.Sleep(2 * time.Second)
		traces := recorder.Stop()
		close(stop)
		second, third := start.Add(time.Second), start.Add(2*time.Second)
		for i, want := range [][2]float64{{8, 24}, {16, 48}} {
			first, then := traces[i].Mbit(start, second), traces[i].Mbit(second, third)
			if math.Abs(first-want[0]) > 0.2 || math.Abs(then-want[1]) > 0.2 {
				t.Errorf("counter %d: %.2f, then %.2f Mbit/s, want %v", i, first, then, want)
			}
		}
		rates := traces[0].Rates(second, start, second)
		if len(rates) != 20 {
			t.Fatalf("%d samples of a second, want 20", len(rates))
		}
		if first := rates[0]; first[0] != -0.975 || math.Abs(first[1]-8) > 0.5 {
			t.Errorf("the first is %v", first)
		}
	})
}

// The last reading is made by Stop, however long before that the last regular
// one was.
func TestStopReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bytes atomic.Uint64
		start := time.Now()
		recorder := Record(time.Hour, bytes.Load)
		time.Sleep(time.Second)
		bytes.Store(1_000_000)
		if got := recorder.Stop()[0].Mbit(start, time.Now()); got != 8 {
			t.Errorf("%g Mbit/s, want 8", got)
		}
	})
}
