package traffic

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Passage is a way that is watched: by a Pulse, and by a session that asks again as soon as
// it was answered. Both go to one port, where an Echo and a Server are.
type Passage struct {
	pulse  *Pulse
	asker  *Asker
	end    chan struct{}
	asking sync.WaitGroup
	passed Passed
}

// Passed is what was seen of a passage.
type Passed struct {
	Beat Beat
	Wait time.Duration // the longest that the session waited for an answer
	Dead string        // why it was not answered any more; "" where it was
}

// ask is what the session of a passage asks.
var ask = Requests{Size: 64, Every: time.Second, For: time.Second}

// StartPassage starts to watch a way, by a datagram and a request each so long after the one before.
func StartPassage(ctx context.Context, w Where, every time.Duration) (*Passage, error) {
	p := &Passage{end: make(chan struct{})}
	var err error
	if p.asker, err = Connect(ctx, w); err != nil {
		return nil, err
	}
	if p.pulse, err = StartPulse(ctx, w, every); err != nil {
		return nil, errors.Join(err, p.asker.Close())
	}
	p.asking.Go(func() { p.askAgain(every) })
	return p, nil
}

func (p *Passage) askAgain(every time.Duration) {
	for {
		select {
		case <-p.end:
			return
		case <-time.After(every):
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		begin := time.Now()
		_, err := p.asker.Ask(ctx, ask)
		cancel()
		p.passed.Wait = max(p.passed.Wait, time.Since(begin))
		if err != nil {
			p.passed.Dead = err.Error()
			return
		}
	}
}

// Stop waits for what is on its way, less than a quarter of a minute, and returns what was seen.
func (p *Passage) Stop() Passed {
	close(p.end)
	p.passed.Beat = p.pulse.Stop()
	p.asking.Wait()
	_ = p.asker.Close() // all that it was for is known
	return p.passed
}
