package lab

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// deaf is a controller whose Set does nothing: the lab must find that out.
type deaf struct{ *rawController }

func (deaf) Set(context.Context, int, policy.Level) error { return nil }

func raised(t *testing.T, c Controller, fn func(ctx context.Context, l *priorityLab)) {
	t.Helper()
	s, err := newSession(experiments()[0], Options{Controller: c})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	l := &priorityLab{session: s}
	if err := l.build(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = l.under(ctx, levels{0, 0}, l.flows[1:], func() error {
		fn(ctx, l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSetMovesTheFlow(t *testing.T) {
	testutil.Needs(t, "htb qdisc", "sock_create")
	raised(t, newRawController(testutil.Cgroup2(t)), func(ctx context.Context, l *priorityLab) {
		took, moved, err := l.set(ctx, l.flows[1], 0, 15)
		if err != nil || !moved || took <= 0 {
			t.Errorf("raised: %s, %t, %v", took, moved, err)
		}
		if left, err := l.left(ctx, 0, 15); err != nil || !left {
			t.Errorf("the old class still sends: %t, %v", left, err)
		}
		if left, err := l.left(ctx, 15, 0); err != nil || left {
			t.Errorf("the class that the flow is in has been left: %t, %v", left, err)
		}
		if _, _, err := l.set(ctx, l.flows[1], 12, 15); err == nil || !strings.Contains(err.Error(), "one class for both") {
			t.Errorf("levels of one class: %v", err)
		}
	})
}

func TestSetWithoutEffectIsSeen(t *testing.T) {
	testutil.Needs(t, "htb qdisc", "sock_create")
	raised(t, deaf{newRawController(testutil.Cgroup2(t))}, func(ctx context.Context, l *priorityLab) {
		if took, moved, err := l.set(ctx, l.flows[1], 0, 15); err != nil || moved {
			t.Errorf("a controller that does nothing has an effect after %s: %t, %v", took, moved, err)
		}
	})
}
