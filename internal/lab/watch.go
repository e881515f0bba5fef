package lab

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// A look is one reading of a link's classes, somewhere between two moments.
type look struct {
	begin, end time.Time
	classes    []ClassCount
}

// watching is the distance of two looks: a part of the ten milliseconds or so
// that the full queue of a class holds.
const watching = 2 * time.Millisecond

// watch looks at a link's classes again and again. The function that it returns
// must be called and ends that.
func (s *session) watch(ctx context.Context, link string) (stop func() ([]look, error)) {
	watched, cancel := context.WithCancel(ctx)
	var (
		wg     sync.WaitGroup
		looks  []look
		failed error
	)
	wg.Go(func() {
		for pause(watched, watching) == nil {
			l := look{begin: time.Now()}
			if l.classes, failed = s.classCounters(ctx, link); failed != nil {
				return
			}
			l.end = time.Now()
			looks = append(looks, l)
		}
	})
	return func() ([]look, error) {
		cancel()
		wg.Wait()
		return looks, failed
	}
}

// beside is what the other classes sent while packets of a level's waited, in
// Mbit/s of frames, and over how much time that is certain. What waits at one
// look takes the line as long as its bytes need; where the next look comes
// earlier, none of the others was due in between. A burst that the shaper had
// saved may send it sooner: that counts against the queue. A link that has no
// class for the level, or no other, gives no time.
func beside(looks []look, level policy.Level, rate policy.Rate) (mbit float64, certain time.Duration) {
	var sent uint64
	for i := 1; i < len(looks); i++ {
		a, b := looks[i-1], looks[i]
		waits, err := class(a.classes, level)
		if err != nil || len(a.classes) < 2 {
			return 0, 0
		}
		if needs := float64(waits.Backlog) * 8 / float64(rate); b.end.Sub(a.begin).Seconds() <= needs {
			sent += others(b.classes, level) - others(a.classes, level)
			certain += b.begin.Sub(a.begin)
		}
	}
	if certain == 0 {
		return 0, 0
	}
	return float64(sent) * 8 / 1e6 / certain.Seconds(), certain
}

// others is what all classes but that of a level have sent.
func others(classes []ClassCount, level policy.Level) (bytes uint64) {
	for _, c := range classes {
		if !slices.Contains(c.Levels, level) {
			bytes += c.Bytes
		}
	}
	return bytes
}
