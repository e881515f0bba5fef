package traffic

import (
	"context"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// A way that is none for a while is a gap at least as long, and datagrams that are lost; one
// that stays none is a gap until the end.
func TestPulse(t *testing.T) {
	ns := testutil.NewNamespace(t)
	const away = 100 * time.Millisecond
	echo := func() *Echo {
		t.Helper()
		e, err := StartEcho(ns.Path(), local(7))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	pulse := func() *Pulse {
		t.Helper()
		p, err := StartPulse(context.Background(), Where{Netns: ns.Path(), To: local(7)}, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	answered := func(p *Pulse, more int) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for before, now := -1, 0; before < 0 || now < before+more; time.Sleep(time.Millisecond) {
			p.mu.Lock()
			now = len(p.seen)
			p.mu.Unlock()
			if before < 0 {
				before = now
			}
			if time.Now().After(deadline) {
				t.Fatal("no echoes come")
			}
		}
	}
	e, p := echo(), pulse()
	answered(p, 10)
	if b := p.Stop(); b.Sent < 10 || b.Lost != 0 || b.Gap <= 0 {
		t.Errorf("on a way that stays: %+v", b)
	}
	p = pulse()
	e.Close()
	time.Sleep(away)
	e = echo()
	answered(p, 5)
	if b := p.Stop(); b.Lost == 0 || b.Lost >= b.Sent || b.Gap < away {
		t.Errorf("on a way that was none for %s: %+v", away, b)
	}
	p = pulse()
	e.Close()
	time.Sleep(away)
	if b := p.Stop(); b.Lost == 0 || b.Gap < away {
		t.Errorf("on a way that stays none: %+v", b)
	}
	if _, err := StartPulse(context.Background(), Where{Netns: ns.Path(), To: local(7)}, 0); err == nil {
		t.Error("a pace of nothing")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := StartPulse(ctx, Where{Netns: ns.Path(), To: local(7)}, time.Millisecond); err == nil {
		t.Error("nobody echoes, and that is no error")
	}
}
