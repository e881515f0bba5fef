package agent

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// A look is one reading of a link's classes, somewhere between two moments.
type look struct {
	begin, end time.Time
	classes    []Class
}

// watch looks at a link's classes until the function that it returns is called.
func watch(t *testing.T, a *Agent, link string) (stop func() []look) {
	t.Helper()
	var (
		wg     sync.WaitGroup
		looks  []look
		failed error
	)
	ended := make(chan struct{})
	wg.Go(func() {
		for ; ; time.Sleep(time.Millisecond) {
			select {
			case <-ended:
				return
			default:
			}
			l := look{begin: time.Now()}
			if l.classes, failed = a.Class(link); failed != nil {
				return
			}
			l.end = time.Now()
			looks = append(looks, l)
		}
	})
	return func() []look {
		t.Helper()
		close(ended)
		wg.Wait()
		if failed != nil {
			t.Fatal(failed)
		}
		return looks
	}
}

// beside is the part of the line that the other classes had while packets of a
// level's waited, and over how much time that is certain. What waits at one look
// takes the line as long as its bytes need; where the next look comes earlier,
// none of the others was due in between. The line while nothing of the level
// waits is the others' by right, however seldom its sender is scheduled.
func beside(looks []look, level policy.Level, mbit int) (part float64, certain time.Duration) {
	rate := float64(mbit) * 1e6 / 8 // bytes a second
	var sent uint64
	for i := 1; i < len(looks); i++ {
		a, b := looks[i-1], looks[i]
		for c := range a.classes {
			if !slices.Contains(a.classes[c].Levels, level) {
				continue
			}
			if b.end.Sub(a.begin).Seconds()*rate > float64(a.classes[c].Backlog) {
				continue
			}
			certain += b.begin.Sub(a.begin)
			for other := range a.classes {
				if other != c {
					sent += b.classes[other].Bytes - a.classes[other].Bytes
				}
			}
		}
	}
	if certain == 0 {
		return 0, 0
	}
	return float64(sent) / rate / certain.Seconds(), certain
}

// between are the looks of a time.
func between(looks []look, from, to time.Time) (some []look) {
	for _, l := range looks {
		if l.begin.After(from) && l.end.Before(to) {
			some = append(some, l)
		}
	}
	return some
}

// holds reports whether packets of a level's waited for long enough to judge the
// others, and fails the test if these were sent meanwhile. The rate is in Mbit/s.
func holds(t *testing.T, looks []look, level policy.Level, rate int) (full bool) {
	t.Helper()
	part, certain := beside(looks, level, rate)
	t.Logf("packets of level %d waited for %v, and the others had %.4f of %d Mbit/s", level, certain, part, rate)
	if certain < 300*time.Millisecond {
		return false
	}
	classes := looks[0].classes
	floor := float64(classes[0].Floor) / (float64(rate) * 1e6)
	if most := 0.01 + floor*float64(len(classes)-1); part > most {
		t.Errorf("while packets of level %d waited, the others had %.4f of the line, want at most %.4f", level, part, most)
	}
	return true
}
