package observe

import (
	"testing"
	"time"
)

// The way into an interrupt takes longer than a look at the clock, and less than a task's turn.
func TestWay(t *testing.T) {
	took, err := way()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(took)
	if took < 100*time.Nanosecond || took > 100*time.Microsecond {
		t.Errorf("it takes %s", took)
	}
}

// An interruption is the longest gap in an attempt; what comes between two of them is something else.
func TestUsual(t *testing.T) {
	var w watcher
	for i := range time.Duration(interruptions) {
		at := 100 * i
		w.attempts = append(w.attempts, span{at, 50})
		w.gaps = append(w.gaps, span{at + 1, 2}, span{at + 10, 30 + i%3}, span{at + 60, 1000})
	}
	if took, err := w.usual(); err != nil || took != 31 {
		t.Errorf("%d, %v", took, err)
	}
	w.gaps = w.gaps[:interruptions]
	if _, err := w.usual(); err == nil {
		t.Error("two thirds were not noticed")
	}
}
