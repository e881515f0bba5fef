package lab

import (
	"slices"
	"strings"
	"testing"
)

// A memoryRun is what one repetition of the tcp-memory lab measured, with bounds of 16 MiB
// and 128 MiB.
type memoryRun struct {
	unbounded, bounded [2]float64 // MB: 50 connections, 1,000
	connections        float64    // of the 1,000
	alone, beside      float64    // Mbit/s of the neighbour, beside the bounded
	idle, requests     float64    // ms of its requests, likewise
	on, granted        float64    // of rr_off
	nested             float64
	left               string // why there are no 1,000 connections
}

var goodMemory = memoryRun{
	unbounded: [2]float64{131, 774}, bounded: [2]float64{15, 113}, connections: 1000,
	alone: 100, beside: 99, idle: 0.60, requests: 0.61, on: 0.999, granted: 1, nested: 1.001,
}

func memoryJudged(t *testing.T, runs ...memoryRun) *memoryLab {
	t.Helper()
	s, err := newSession(experimentOf(t, "tcp-memory"), Options{Controller: newRawController(""), Repetitions: len(runs)})
	if err != nil {
		t.Fatal(err)
	}
	l := &memoryLab{session: s, loads: stuffings(), talk: newTalking(len(runs))}
	l.talk.arms = talkers()
	for _, r := range runs {
		l.loads[1].left = r.left
		l.measured("alone", "neighbour_mbit", "Mbit/s", r.alone)
		l.measured("alone", "neighbour_rr_ms", "ms", r.idle)
		for i, load := range l.loads {
			if load.left != "" {
				continue
			}
			for arm, megabytes := range map[string]float64{"unbounded": r.unbounded[i], "bounded": r.bounded[i]} {
				l.measured(arm, "tcp_memory_bytes"+load.suffix, "B", megabytes*1e6)
				l.measured(arm, "neighbour_mbit"+load.suffix, "Mbit/s", r.beside)
				l.measured(arm, "neighbour_rr_ms"+load.suffix, "ms", r.requests)
				l.measured(arm, "connections"+load.suffix, "", []float64{50, r.connections}[i])
			}
		}
		for arm, rate := range map[string]float64{"rr_off": 1, "rr_on": r.on, "rr_granted": r.granted, "rr_watched": 0.97, "rr_nested_1000": r.nested} {
			l.measured(arm, transactions, "/s", 70000*rate)
		}
	}
	l.conclude()
	return l
}

func TestMemoryClaims(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*memoryRun)
		want   string
	}{
		"good":                          {func(*memoryRun) {}, "kept kept kept kept kept kept kept kept kept kept kept"},
		"nothing is stuffed":            {func(r *memoryRun) { r.unbounded[0] = 16 }, "broken kept open kept kept kept kept kept kept kept kept"},
		"little is":                     {func(r *memoryRun) { r.unbounded[0] = 30 }, "broken kept kept kept kept kept kept kept kept kept kept"},
		"50 pass the bound":             {func(r *memoryRun) { r.bounded[0] = 18.5 }, "kept kept broken kept kept kept kept kept kept kept kept"},
		"50 are within the tolerance":   {func(r *memoryRun) { r.bounded[0] = 18.4 }, "kept kept kept kept kept kept kept kept kept kept kept"},
		"1,000 pass it":                 {func(r *memoryRun) { r.bounded[1] = 148 }, "kept kept kept broken kept kept kept kept kept kept kept"},
		"some connections are not made": {func(r *memoryRun) { r.connections = 990 }, "kept kept kept open kept kept kept kept kept kept kept"},
		"and pass the bound":            {func(r *memoryRun) { r.connections, r.bounded[1] = 990, 148 }, "kept kept kept broken kept kept kept kept kept kept kept"},
		"the neighbour has less":        {func(r *memoryRun) { r.beside = 94 }, "kept kept kept kept broken broken kept kept kept kept kept"},
		"its requests wait":             {func(r *memoryRun) { r.requests = 0.64 }, "kept kept kept kept kept kept broken broken kept kept kept"},
		"a bound costs much":            {func(r *memoryRun) { r.on = 0.99 }, "kept kept kept kept kept kept kept kept broken kept kept"},
		"a grant does":                  {func(r *memoryRun) { r.granted = 0.99 }, "kept kept kept kept kept kept kept kept kept broken kept"},
		"depth does":                    {func(r *memoryRun) { r.nested = 0.99 }, "kept kept kept kept kept kept kept kept kept kept broken"},
		"a bound is faster":             {func(r *memoryRun) { r.on = 1.02 }, "kept kept kept kept kept kept kept kept kept kept kept"},
		"the host is small":             {func(r *memoryRun) { r.left = "no room" }, "kept open kept open kept open kept open kept kept kept"},
		"and the bound is passed":       {func(r *memoryRun) { r.left, r.bounded[0] = "no room", 20 }, "kept open broken open kept open kept open kept kept kept"},
		"no answer comes":               {func(r *memoryRun) { r.idle = 0 }, "kept kept kept kept kept kept open open kept kept kept"},
	} {
		run := goodMemory
		c.change(&run)
		l := memoryJudged(t, run, run, run)
		if got := verdicts(l.result.Claims); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, l.result.Claims)
		}
	}
}

func TestMemoryEvidence(t *testing.T) {
	other := goodMemory
	other.bounded, other.beside, other.requests, other.on = [2]float64{18, 120}, 98, 0.62, 1.001
	claims := memoryJudged(t, goodMemory, goodMemory, other).result.Claims
	for i, want := range []string{
		"median 131.0, from 131.0 to 131.0 MB; the bound is 16.8",
		"median 774.0, from 774.0 to 774.0 MB; the bound is 134.2",
		"median 15.0, from 15.0 to 18.0 MB; the bound is 16.8",
		"median 113.0, from 113.0 to 120.0 MB; the bound is 134.2",
		"median 0.990, from 0.980 to 0.990 over 3 pairs; without the bound 0.990",
		"median 0.990, from 0.980 to 0.990 over 3 pairs; without the bound 0.990",
		"median 1.017, from 1.017 to 1.033 over 3 pairs; without the bound 1.017",
		"median 1.017, from 1.017 to 1.033 over 3 pairs; without the bound 1.017",
		"99.97 % of rr_off, ±0.66 with a confidence of 99 %, over 3 pairs; published: 100.12 %; run the lab again on a quiet host",
		"100.00 % of rr_off, ±0.00 with a confidence of 99 %, over 3 pairs",
		"100.10 % of rr_off, ±0.00 with a confidence of 99 %, over 3 pairs; published: 99.85 %",
	} {
		if claims[i].Evidence != want {
			t.Errorf("%q, want %q", claims[i].Evidence, want)
		}
	}
}

// What scatters widely decides a claim only where all of it lies on one side of the bound.
func TestScatteredTalks(t *testing.T) {
	for want, on := range map[string][]float64{
		"open":   {0.98, 1.02, 1.00},
		"broken": {0.80, 0.81, 0.79},
		"kept":   {1.10, 1.11, 1.10},
	} {
		var runs []memoryRun
		for _, rate := range on {
			run := goodMemory
			run.on = rate
			runs = append(runs, run)
		}
		claims := memoryJudged(t, runs...).result.Claims
		if got := verdicts(claims[8:9]); got != want {
			t.Errorf("%v: %s, want %s: %s", on, got, want, claims[8].Evidence)
		}
	}
}

// It goes on until the ratios are known, and not for ever.
func TestTalksEnd(t *testing.T) {
	steady, loud := goodMemory, goodMemory
	loud.nested = 1.1
	if l := memoryJudged(t, steady, steady, steady); !l.known() {
		t.Error("what does not scatter is not known")
	}
	if l := memoryJudged(t, steady, loud, steady); l.known() {
		t.Error("what scatters is known")
	}
	for repetitions, want := range map[int][2]int{1: {5, 2}, 6: {30, 10}, 100: {30, 10}} {
		if k := newTalking(repetitions); k.most != want[0] || k.least != want[1] {
			t.Errorf("%d repetitions: at most %d, at least %d", repetitions, k.most, k.least)
		}
	}
}

// A host that is too small says so, where it is read.
func TestSmallHost(t *testing.T) {
	run := goodMemory
	run.left = "1000 connections may take no more than 100 MB of this host"
	l := memoryJudged(t, run)
	if l.result.Claims[3].Evidence != run.left || len(l.result.Arms) != 8 {
		t.Errorf("%+v", l.result.Claims[3])
	}
	if _, ok := l.result.Ratios["bounded_over_max_1000"]; ok {
		t.Error("a ratio of nothing")
	}
}

// On a host that others use, or where the neighbour alone was unsteady, pairs on both sides
// of a bound decide nothing; pairs on one side do.
func TestUnsteadyNeighbour(t *testing.T) {
	for _, c := range []struct {
		busy     bool
		idle     float64 // ms, of the last repetition
		requests []float64
		want     string
	}{
		{false, 0.60, []float64{0.61, 0.61, 5}, "kept"},
		{false, 0.60, []float64{0.61, 0.70, 5}, "broken"},
		{true, 0.60, []float64{0.61, 0.70, 5}, "open"},
		{true, 0.60, []float64{0.70, 0.70, 5}, "broken"},
		{false, 0.90, []float64{0.61, 0.70, 5}, "open"},
	} {
		var runs []memoryRun
		for _, ms := range c.requests {
			run := goodMemory
			run.requests = ms
			runs = append(runs, run)
		}
		runs[2].idle = c.idle
		l := memoryJudged(t, runs...)
		l.result.Claims, l.busy = nil, c.busy
		l.judge()
		if got := verdicts(l.result.Claims[7:8]); got != c.want {
			t.Errorf("%+v: %s, want %s: %s", c, got, c.want, l.result.Claims[7].Evidence)
		}
	}
}

// Every metric and ratio has words that a reader meets in place of its name.
func TestMemoryIsDescribed(t *testing.T) {
	l := memoryJudged(t, goodMemory)
	named := map[string]bool{}
	for _, label := range slices.Concat(l.result.About.Metrics, l.result.About.Ratios) {
		named[label.Name] = true
	}
	for _, arm := range l.result.Arms {
		for name := range arm.Metrics {
			if !named[name] {
				t.Errorf("%s has no words", name)
			}
		}
	}
	for name := range l.result.Ratios {
		if !named[name] {
			t.Errorf("%s has no words", name)
		}
	}
	for _, want := range []string{"1000 connections, each written up to 640 KiB, with a bound of 128MiB", "rr_watched " + scarce} {
		if !strings.Contains(l.result.About.Summary, want) {
			t.Errorf("%q lacks %q", l.result.About.Summary, want)
		}
	}
}

// TestEachStuffingFits holds what the lab writes against what it promises the host.
func TestEachStuffingFits(t *testing.T) {
	const mb = 1 << 20
	for room, want := range map[uint64][2]uint64{ // what is written into each; 0: left out
		4096 * mb: {4 * mb, 640 << 10},
		300 * mb:  {4 * mb, 300 * mb / 1000},
		200 * mb:  {4 * mb, 0},
		40 * mb:   {40 * mb / 50, 0},
		20 * mb:   {0, 0},
	} {
		s, err := newSession(experimentOf(t, "tcp-memory"), Options{Controller: newRawController("")})
		if err != nil {
			t.Fatal(err)
		}
		l := &memoryLab{session: s, loads: stuffings()}
		l.fit(room)
		for i, s := range l.loads {
			if (s.left != "") != (want[i] == 0) || want[i] != 0 && s.each != want[i] {
				t.Errorf("room for %d MB, %d connections: %d bytes each, %q", room/mb, s.connections, s.each, s.left)
			}
		}
	}
	if free, err := memAvailable(); err != nil || free < 10*mb || free > 1<<50 {
		t.Errorf("free: %d, %v", free, err)
	}
}
