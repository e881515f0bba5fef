package traffic

import (
	"context"
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	a, err := newAlarm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []time.Duration{-time.Second, 0, time.Millisecond, nap + 30*time.Millisecond} {
		then := time.Now().Add(in)
		if !a.at(then) {
			t.Errorf("in %s: the context has ended", in)
		}
		if early := time.Until(then); early > 0 {
			t.Errorf("in %s: %s early", in, early)
		}
	}
}

// An end of the context is noticed, and wins over what is due already.
func TestAlarmEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	a, err := newAlarm(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if a.at(time.Now().Add(time.Hour)) {
		t.Error("an hour has passed")
	}
	if a.at(time.Now()) {
		t.Error("it goes on after its context has ended")
	}
}
