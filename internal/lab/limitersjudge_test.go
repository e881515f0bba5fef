package lab

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// A limitersRun is what one repetition of the limiters lab measured, with a limit
// of 100 Mbit/s.
type limitersRun struct {
	none, ifb, weir float64 // packets/s
	nothing, asking float64 // packets/s through programs that hold nothing
	beyond          float64 // packets/s over the one of two lines alike, beyond those over the other
	free            float64 // Mbit/s without a limit
	many, one       float64 // Mbit/s under Weir's: 32 flows, and one
	again, needless float64 // segments
	idle, beside    float64 // ms
	steal           float64 // ms
}

func limitersJudged(t *testing.T, absent map[string]string, runs ...limitersRun) *limitersLab {
	t.Helper()
	s, err := newSession(experimentOf(t, "limiters"), Options{Controller: newRawController(""), Repetitions: len(runs)})
	if err != nil {
		t.Fatal(err)
	}
	l := &limitersLab{limiter: limiter{session: s, absent: absent}, limits: []policy.Rate{1e9, 125e6, 25e6}}
	for _, r := range runs {
		l.measured("none", "pps", "packets/s", r.none)
		for through, pps := range map[string]float64{"": r.nothing, "_asking": r.asking} {
			l.measured("none", "pps_by_turns"+through, "packets/s", pps)
			l.measured("none", "pps_by_turns_none"+through, "packets/s", r.none)
		}
		l.measured("none", "pps_by_turns_elsewhere", "packets/s", r.none+r.beyond)
		l.measured("none", "pps_by_turns_none_elsewhere", "packets/s", r.none)
		l.measured("none", "softirq_ns_per_packet", "ns", 500)
		if absent["ifb_htb"] == "" {
			l.measured("ifb_htb", "pps_by_turns", "packets/s", r.ifb)
			l.measured("ifb_htb", "pps_by_turns_none", "packets/s", r.none)
		}
		l.measured("none", "mbit", "Mbit/s", r.free)
		l.measured("none", "mbit_1", "Mbit/s", r.free)
		l.measured("none", "mbit_ecn", "Mbit/s", r.free)
		if absent["weir"] != "" {
			continue
		}
		l.measured("weir", "pps_by_turns", "packets/s", r.weir)
		l.measured("weir", "pps_by_turns_none", "packets/s", r.none)
		for suffix, mbit := range map[string]float64{"": r.many, "_1": r.one, "_ecn": r.many} {
			l.measured("weir", "mbit"+suffix, "Mbit/s", mbit)
			l.measured("weir", "retransmits"+suffix, "", r.again)
			l.measured("weir", "retransmits_needless"+suffix, "", r.needless)
			l.measured("weir", "limit_drops"+suffix, "", 0)
		}
		l.measured("weir", "rr_alone_p99_ms", "ms", r.idle)
		l.measured("weir", "rr_idle_p99_ms", "ms", 1e3) // nothing is compared with it
		l.measured("weir", "rr_p99_ms", "ms", r.beside)
		l.measured("weir", "rr_steal_ms", "ms", r.steal)
	}
	l.conclude()
	return l
}

var goodLimiters = limitersRun{none: 1e6, nothing: 9.95e5, asking: 9.9e5, ifb: 4e5, weir: 9.8e5, free: 5000, many: 99.9, one: 100.1, idle: 0.1, beside: 0.14}

func TestLimitersClaims(t *testing.T) {
	noIfb := map[string]string{"ifb_htb": "this kernel lacks the ifb device"}
	noLimits := map[string]string{"weir": "BPF programs of this kernel can not count a limit together"}
	for name, c := range map[string]struct {
		change func(*limitersRun)
		absent map[string]string
		want   string
	}{
		"good":                       {func(*limitersRun) {}, nil, "kept kept kept kept kept"},
		"a packet costs more":        {func(r *limitersRun) { r.weir = 9.6e5 }, nil, "broken kept kept kept kept"},
		"the better line had it":     {func(r *limitersRun) { r.beyond = 1.1e4 }, nil, "open kept kept kept kept"},
		"the worse line had it":      {func(r *limitersRun) { r.weir, r.beyond = 9.65e5, -6e3 }, nil, "open kept kept kept kept"},
		"it was no matter":           {func(r *limitersRun) { r.beyond = 1e4 }, nil, "kept kept kept kept kept"},
		"nothing without a limit":    {func(r *limitersRun) { r.none = 0 }, nil, "open kept kept kept open"},
		"32 flows get more":          {func(r *limitersRun) { r.many = 101.1 }, nil, "kept broken kept kept kept"},
		"one flow gets less":         {func(r *limitersRun) { r.one = 98.9 }, nil, "kept broken kept kept kept"},
		"the line is hardly more":    {func(r *limitersRun) { r.free = 124 }, nil, "kept open open open kept"},
		"a segment is sent again":    {func(r *limitersRun) { r.again = 1 }, nil, "kept kept broken kept kept"},
		"one that had arrived":       {func(r *limitersRun) { r.again, r.needless = 1, 1 }, nil, "kept kept broken kept kept"},
		"requests wait":              {func(r *limitersRun) { r.beside = 0.16 }, nil, "kept kept kept broken kept"},
		"an ifb costs nothing":       {func(r *limitersRun) { r.ifb = 1.1e6 }, nil, "kept kept kept kept broken"},
		"an ifb is no different":     {func(r *limitersRun) { r.ifb = 1e6 }, nil, "kept kept kept kept open"},
		"there is no ifb":            {func(*limitersRun) {}, noIfb, "kept kept kept kept open"},
		"there is no Weir":           {func(*limitersRun) {}, noLimits, "open open open open kept"},
		"no answer comes when alone": {func(r *limitersRun) { r.idle = 0 }, nil, "kept kept kept open kept"},
	} {
		run := goodLimiters
		c.change(&run)
		l := limitersJudged(t, c.absent, run, run, run)
		if got := verdicts(l.result.Claims); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, l.result.Claims)
		}
	}
}

func TestLimitersEvidence(t *testing.T) {
	slow, lossy := goodLimiters, goodLimiters
	slow.weir, slow.many, slow.beside, slow.steal = 9e5, 95, 0.3, 230
	lossy.steal = 10
	lossy.again, lossy.needless = 2, 1
	claims := limitersJudged(t, nil, goodLimiters, slow, lossy).result.Claims
	for i, want := range []string{
		"median 0.980, from 0.900 to 0.980 over 3 pairs; through a program that does nothing: median 0.995, from 0.995 to 0.995 over 3 pairs; through one that asks each packet's socket, and no more: median 0.990, from 0.990 to 0.990 over 3 pairs; over two lines alike: median 1.000, from 1.000 to 1.000 over 3 pairs",
		"with 32: median 99.9, from 95 to 99.9 % of the limit; with 1: median 100.1, from 100.1 to 100.1 % of the limit; with 32 with ECN: median 99.9, from 95 to 99.9 % of the limit",
		"segments sent again in all runs: none 0, ifb_htb 0, tc_police 0, htb 0, edt 0, weir 6 (3 had arrived); Weir's limit dropped 0",
		"median 1.400, from 1.400 to 3.000 over 3 pairs; 1200 requests each time; of its CPUs' time the host kept 10 ms in the median, 230 at most, and 230 where they took longest, 0.3 ms",
		"median 0.400, from 0.400 to 0.400 over 3 pairs; published: 0.36",
	} {
		if claims[i].Evidence != want {
			t.Errorf("%q, want %q", claims[i].Evidence, want)
		}
	}
}

// Where the host itself was not steady, pairs on both sides of a bound decide
// nothing; pairs on one side do.
func TestUnsteadyHost(t *testing.T) {
	for want, weir := range map[string][]float64{
		"open":   {6e5, 1.2e6, 1e6},
		"kept":   {6e5, 1.3e6, 1e6},
		"broken": {5e5, 1.1e6, 9e5},
	} {
		var runs []limitersRun
		for i, none := range []float64{6e5, 1.3e6, 1e6} {
			run := goodLimiters
			run.none, run.weir = none, weir[i]
			runs = append(runs, run)
		}
		claim := limitersJudged(t, nil, runs...).result.Claims[0]
		if got := verdicts([]report.Claim{claim}); got != want {
			t.Errorf("%v packets/s: %s, want %s: %s", weir, got, want, claim.Evidence)
		}
		if said := strings.Contains(claim.Evidence, "varied 2.2-fold by itself"); said != (want == "open") {
			t.Errorf("%s: %s", want, claim.Evidence)
		}
	}
}

// Of 18 pairs the true median is from the fifth to the fourteenth, so on a host that is not steady four on the other side of a
// bound leave the verdict, and five do not.
func TestManyPairsDecide(t *testing.T) {
	for slow, want := range map[int]string{0: "kept", 4: "kept", 5: "open", 13: "open", 14: "broken", 18: "broken"} {
		var runs []limitersRun
		for i := range 18 {
			run := goodLimiters
			run.idle = 0.1 * float64(1+i%2)
			run.beside = 1.4 * run.idle
			if i < slow {
				run.beside = 1.6 * run.idle
			}
			runs = append(runs, run)
		}
		claim := limitersJudged(t, nil, runs...).result.Claims[3]
		if got := verdicts([]report.Claim{claim}); got != want {
			t.Errorf("%d of 18 above the bound: %s, want %s: %s", slow, got, want, claim.Evidence)
		}
	}
}
