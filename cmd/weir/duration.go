package main

import (
	"fmt"
	"strings"
	"time"
)

// span renders a time that is left or has passed: 90 s, 5 min, 3 h, 2 days.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// A waitFlag is a flag with a time between two bounds, and the advice for one
// outside of them.
type waitFlag struct {
	value       *time.Duration
	least, most time.Duration
	advice      string
}

func (w *waitFlag) String() string {
	if w.value == nil || *w.value == 0 {
		return ""
	}
	return w.value.String()
}

func (w *waitFlag) Type() string { return "duration" }

func (w *waitFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return &usageError{"not a time", "a number and a unit, as in 90s or 5m"}
	}
	if d < w.least || d > w.most {
		return &usageError{fmt.Sprintf("not from %s to %s", short(w.least), short(w.most)), w.advice}
	}
	*w.value = d
	return nil
}

// short is Duration.String without the zeros behind: 24h.
func short(d time.Duration) string {
	text := d.String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}
