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
		recorder := Record(50*time.Millisecond, bytes.Load)
		time.Sleep(2 * time.Second)
		trace := recorder.Stop()
		close(stop)
		second := start.Add(time.Second)
		for _, c := range []struct {
			from, to time.Time
			want     float64
		}{
			{start, second, 8},
			{second, start.Add(2 * time.Second), 24},
			{start.Add(500 * time.Millisecond), start.Add(1500 * time.Millisecond), 16},
			{start.Add(110 * time.Millisecond), start.Add(140 * time.Millisecond), 8}, // between readings
			{second, second, 0},
		} {
			if got := trace.Mbit(c.from, c.to); math.Abs(got-c.want) > 0.2 {
				t.Errorf("%s to %s: %.2f Mbit/s, want %g", c.from.Sub(start), c.to.Sub(start), got, c.want)
			}
		}
		rates := trace.Rates(second, start, second)
		if len(rates) != 20 {
			t.Fatalf("%d samples of a second, want 20", len(rates))
		}
		if first := rates[0]; first[0] != -0.975 || math.Abs(first[1]-8) > 0.5 {
			t.Errorf("the first is %v", first)
		}
	})
}

func TestEmptyTrace(t *testing.T) {
	var trace Trace
	now := time.Now()
	if got := trace.Mbit(now, now.Add(time.Second)); got != 0 {
		t.Errorf("%g", got)
	}
	if got := trace.Rates(now, now, now.Add(time.Second)); got != nil {
		t.Errorf("%v", got)
	}
}
