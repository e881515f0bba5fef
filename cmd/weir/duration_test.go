package main

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 90 * time.Second: "90 s", 10 * time.Minute: "10 min", 3 * time.Hour: "3 h", 72 * time.Hour: "3 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{shortestWait: "10s", 5 * time.Minute: "5m", longestWait: "24h", 90 * time.Minute: "1h30m"} {
		if got := short(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}
