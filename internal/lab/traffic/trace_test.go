package traffic

import (
	"math"
	"testing"
	"time"
)

var epoch = time.Unix(1_000_000, 0)

func after(ms float64) time.Time { return epoch.Add(time.Duration(ms * float64(time.Millisecond))) }

// traced is a counter that was read every 100 ms and grew by so many Mbit/s
// before each reading but the first.
func traced(mbits ...float64) Trace {
	t := Trace{[]point{{at: epoch}}}
	for i, mbit := range mbits {
		last := t.points[i]
		t.points = append(t.points, point{after(float64(i+1) * 100), last.bytes + uint64(mbit*1e6/8/10)})
	}
	return t
}

func TestMbit(t *testing.T) {
	trace := traced(8, 8, 24)
	for _, c := range []struct{ from, to, want float64 }{
		{0, 200, 8},
		{200, 300, 24},
		{100, 300, 16},
		{110, 140, 8},  // between readings
		{150, 250, 16}, // over one
		{100, 100, 0},
		{200, 100, 0},
		{300, 400, 0},    // nothing is known, nothing came
		{-100, 100, 4},   // the same before
		{-200, -100, 0},  //
		{100, 500, 8},    // (8 + 24) / 4
		{-1000, 1000, 2}, //
	} {
		if got := trace.Mbit(after(c.from), after(c.to)); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%g to %g ms: %g Mbit/s, want %g", c.from, c.to, got, c.want)
		}
	}
}

func TestReaches(t *testing.T) {
	trace := traced(0, 20, 8, 12)
	for _, c := range []struct{ mbit, window, from, to, want float64 }{
		{8, 100, 0, 400, 140},
		{8, 50, 0, 400, 120},
		{8, 50, 200, 400, 250}, // nothing is known before its end
		{13, 200, 0, 400, 275}, // nothing, 20 and 8 Mbit/s
		{19, 200, 0, 400, -1},  // over so long it never has that
		{20, 100, 0, 199, -1},  // too late
	} {
		want := after(c.want)
		got, ok := trace.Reaches(c.mbit, time.Duration(c.window)*time.Millisecond, after(c.from), after(c.to))
		if ok != (c.want >= 0) || ok && got.Sub(want).Abs() > time.Millisecond {
			t.Errorf("%g Mbit/s over %g ms from %g to %g: %s, %t, want %g", c.mbit, c.window, c.from, c.to, got.Sub(epoch), ok, c.want)
		}
	}
}

func TestRatesLeaveOutTheTooShort(t *testing.T) {
	trace := traced(8, 16)
	last := trace.points[2]
	trace.points = append(trace.points, point{last.at.Add(time.Microsecond), last.bytes + 1000})
	got := trace.Rates(epoch, epoch, after(1000))
	if len(got) != 2 || got[0] != [2]float64{0.05, 8} || got[1] != [2]float64{0.15, 16} {
		t.Errorf("%v", got)
	}
	if got := trace.Rates(epoch, after(100), after(1000)); len(got) != 1 {
		t.Errorf("from the second on: %v", got)
	}
}

func TestEmptyTrace(t *testing.T) {
	var trace Trace
	if got := trace.Mbit(epoch, after(1000)); got != 0 {
		t.Errorf("%g", got)
	}
	if got := trace.Rates(epoch, epoch, after(1000)); got != nil {
		t.Errorf("%v", got)
	}
}

func TestBegin(t *testing.T) {
	if at, ok := traced(0, 0, 8, 8).Begin(); !ok || !at.Equal(after(200)) {
		t.Errorf("it begins at %v, %v", at, ok)
	}
	if at, ok := traced(0, 0).Begin(); ok {
		t.Errorf("what never begins does at %v", at)
	}
}
