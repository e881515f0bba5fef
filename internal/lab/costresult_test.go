package lab

import (
	"testing"

	"github.com/weir-net/weir/internal/cost"
)

// A costRun is what each repetition of the cpu-cost lab measured.
type costRun struct {
	stolen, metered float64 // beside two streams, points
	sums            float64
	off, on         float64 // what the loop had without the meter, and with it
	rr              float64 // with the meter, of that without
	accounting      cost.Accounting
	busy            bool
	wild            bool // what the loop had went up and down
}

func costJudged(t *testing.T, r costRun) map[string]string {
	t.Helper()
	const n = 6
	s, err := newSession(experimentOf(t, "cpu-cost"), Options{Controller: newRawController(""), Repetitions: n})
	if err != nil {
		t.Fatal(err)
	}
	s.busy = r.busy
	l := &costLab{session: s, accounting: r.accounting, limited: &limitedRoute{limiter: limiter{session: s}}}
	for i := range n {
		for _, arm := range append(costInfo.Arms[:6:6], limitArms()...) {
			l.measured(arm, "apparent_percent", "%", 99)
			l.measured(arm, "stolen_percent", "%", r.stolen)
			l.measured(arm, "stolen_percent_meter", "%", r.metered)
			l.measured(arm, "meter_itself_percent", "%", 0)
			l.measured(arm, "sums_percent", "%", r.sums)
		}
		swing := 0.0
		if r.wild {
			swing = float64(i%2) * 20
		}
		l.measured("meter_off", "left_percent", "%", r.off)
		l.measured("meter_on", "left_percent", "%", r.on-swing)
		l.measured("rr_off", transactions, "/s", 70000)
		l.measured("rr_on", transactions, "/s", 70000*r.rr)
	}
	l.conclude()
	verdicts := map[string]string{}
	for _, c := range l.result.Claims {
		switch {
		case c.Kept == nil:
			verdicts[c.Text] = "unproven"
		case *c.Kept:
			verdicts[c.Text] = "kept"
		default:
			verdicts[c.Text] = "broken"
		}
	}
	return verdicts
}

func TestCostClaims(t *testing.T) {
	good := costRun{stolen: 30, metered: 29, sums: 99.9, off: 60, on: 59.5, rr: 0.99, accounting: cost.ByTick}
	for name, c := range map[string]struct {
		change func(*costRun)
		want   map[string]string // those that are not kept
	}{
		"as it shall be":                  {func(*costRun) {}, nil},
		"nothing is stolen":               {func(r *costRun) { r.stolen, r.metered = 1, 1 }, map[string]string{stealsUnseen: "broken"}},
		"the meter sees too little":       {func(r *costRun) { r.metered = 26 }, map[string]string{meterAgrees: "broken"}},
		"the meter sees too much":         {func(r *costRun) { r.metered = 34 }, map[string]string{meterAgrees: "broken"}},
		"rows are lost":                   {func(r *costRun) { r.sums = 90 }, map[string]string{meterSums: "broken"}},
		"the meter takes much":            {func(r *costRun) { r.on = 57 }, map[string]string{meterIsCheap: "broken"}},
		"and of requests":                 {func(r *costRun) { r.rr = 0.9 }, map[string]string{meterSparesRR: "broken"}},
		"other work decides nothing":      {func(r *costRun) { r.busy, r.wild = true, true }, map[string]string{meterIsCheap: "unproven"}},
		"who varies without it is broken": {func(r *costRun) { r.wild = true }, map[string]string{meterIsCheap: "broken"}},
		"a kernel that charges nobody": {
			func(r *costRun) { r.accounting = cost.ByIRQ }, map[string]string{stealsUnseen: "unproven", meterAgrees: "unproven"},
		},
	} {
		r := good
		c.change(&r)
		for text, verdict := range costJudged(t, r) {
			want := c.want[text]
			if want == "" {
				want = "kept"
			}
			if verdict != want {
				t.Errorf("%s: %s is %s, want %s", name, text, verdict, want)
			}
		}
	}
}
