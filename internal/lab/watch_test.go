package lab

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// looked is a look that begins at a moment in ms and takes half a ms: what waits
// in the class of 15, and what the others have sent.
func looked(ms float64, waits, sent uint64) look {
	at := time.Unix(1_000_000, 0).Add(time.Duration(ms * float64(time.Millisecond)))
	return look{at, at.Add(time.Millisecond / 2), []ClassCount{
		{Class: 0, Levels: []policy.Level{0, 1}, Bytes: sent / 5, Backlog: 90_000},
		{Class: 2, Bytes: sent - sent/5},
		{Class: 1, Levels: []policy.Level{14, 15}, Bytes: 1_000_000, Backlog: waits},
	}}
}

// At 100 Mbit/s 12,500 bytes are a millisecond.
func TestBeside(t *testing.T) {
	for name, c := range map[string]struct {
		looks   []look
		mbit    float64
		certain time.Duration
	}{
		"none":                        {nil, 0, 0},
		"one":                         {[]look{looked(0, 90_000, 0)}, 0, 0},
		"waits all the time":          {[]look{looked(0, 90_000, 5000), looked(2, 90_000, 5000), looked(4, 90_000, 5000)}, 0, 4 * time.Millisecond},
		"the other one gets a half":   {[]look{looked(0, 90_000, 5000), looked(2, 90_000, 17_500)}, 50, 2 * time.Millisecond},
		"nothing waits":               {[]look{looked(0, 0, 5000), looked(2, 0, 30_000)}, 0, 0},
		"begins to wait":              {[]look{looked(0, 0, 5000), looked(2, 90_000, 30_000), looked(4, 90_000, 30_000)}, 0, 2 * time.Millisecond},
		"waits just long enough":      {[]look{looked(0, 31_250, 0), looked(2, 0, 12_500)}, 50, 2 * time.Millisecond},
		"may have stopped to wait":    {[]look{looked(0, 31_249, 0), looked(2, 90_000, 12_500)}, 0, 0},
		"nobody looked for a while":   {[]look{looked(0, 90_000, 0), looked(50, 90_000, 300_000), looked(52, 90_000, 300_000)}, 0, 2 * time.Millisecond},
		"a part of all":               {[]look{looked(0, 90_000, 0), looked(2, 10_000, 1250), looked(4, 90_000, 9000), looked(6, 0, 9000)}, 2.5, 4 * time.Millisecond},
		"no class carries the urgent": {[]look{{classes: []ClassCount{{Levels: []policy.Level{0}}}}, {}}, 0, 0},
		"there is only one class":     {[]look{{classes: []ClassCount{{Levels: []policy.Level{0, 15}, Backlog: 9000}}}, {}}, 0, 0},
	} {
		mbit, certain := beside(c.looks, 15, 100e6)
		if math.Abs(mbit-c.mbit) > 1e-9 || certain != c.certain {
			t.Errorf("%s: %g Mbit/s in %s, want %g in %s", name, mbit, certain, c.mbit, c.certain)
		}
	}
}

// counted is a controller that counts how often it is asked, until it fails.
type counted struct {
	Controller
	asked, fails int
}

var errGone = errors.New("gone")

func (c *counted) ClassCounters(ctx context.Context, _ string) ([]ClassCount, error) {
	if c.asked++; c.asked == c.fails {
		return nil, errGone
	}
	time.Sleep(time.Millisecond)
	return nil, ctx.Err()
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		stop := (&session{Options: Options{Controller: c}}).watch(t.Context(), "line")
		time.Sleep(31 * time.Millisecond) // and ends within a look
		looks, err := stop()
		if err != nil || len(looks) != 10 || c.asked != 10 {
			t.Errorf("%d looks, %d asked, %v", len(looks), c.asked, err)
		}
		for _, l := range looks {
			if l.end.Sub(l.begin) != time.Millisecond {
				t.Errorf("from %s to %s", l.begin, l.end)
			}
		}
	})
}

func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{fails: 3}
		stop := (&session{Options: Options{Controller: c}}).watch(t.Context(), "line")
		time.Sleep(time.Second)
		if looks, err := stop(); !errors.Is(err, errGone) || len(looks) != 2 || c.asked != 3 {
			t.Errorf("%d looks, %d asked, %v", len(looks), c.asked, err)
		}
	})
}
