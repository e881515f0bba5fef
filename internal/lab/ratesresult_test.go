package lab

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

// ratesJudged has each metric at what is good, but for one run of those that are named.
func ratesJudged(t *testing.T, but map[string]float64) *ratesLab {
	t.Helper()
	s, err := newSession(experimentOf(t, "rates"), Options{Controller: newRawController(""), Repetitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	l := &ratesLab{session: s, rates: []policy.Rate{10e6, fastest}}
	measured := func(arm, name string, good float64) {
		value, named := but[arm+" "+name]
		for run := range s.Repetitions {
			if named && run == 1 {
				l.measured(arm, name, "", value)
			} else {
				l.measured(arm, name, "", good)
			}
		}
	}
	for _, arm := range ratesInfo.Arms {
		for i := range l.rates {
			rate := l.rateName(i)
			for _, kind := range rateKinds {
				measured(arm, kind.name+"_"+rate, 99.9)
			}
			for _, kind := range streaming {
				measured(arm, "retransmits_"+kind.name+"_"+rate, 0)
				measured(arm, "retransmits_needless_"+kind.name+"_"+rate, 0)
				measured(arm, "settled_"+kind.name+"_"+rate, 20)
				measured(arm, "highest_"+kind.name+"_"+rate, 100.5)
			}
			measured(arm, "jain_"+rate, 0.999)
			measured(arm, "settled_stop_"+rate, 10)
		}
	}
	for where := range but { // what is known only where CPUs are watched
		arm, name, _ := strings.Cut(where, " ")
		if strings.HasPrefix(name, "here_") {
			measured(arm, name, 20)
		} else if strings.HasPrefix(name, "away_") {
			measured(arm, name, 0)
		}
	}
	l.conclude()
	return l
}

func TestRatesClaims(t *testing.T) {
	for name, c := range map[string]struct {
		but  map[string]float64
		want string
	}{
		"good":                               {nil, "kept kept kept kept kept kept kept kept"},
		"just enough":                        {map[string]float64{"egress tcp_1_10mbit": 99, "container udp_fastest": 101}, "kept kept kept kept kept kept kept kept"},
		"one flow lacks":                     {map[string]float64{"egress tcp_1_10mbit": 98.9}, "broken kept kept kept kept kept kept kept"},
		"UDP has too much":                   {map[string]float64{"container udp_fastest": 101.1}, "kept broken kept kept kept kept kept kept"},
		"UDP is not received":                {map[string]float64{"ingress udp_10mbit": 98}, "kept kept broken kept kept kept kept kept"},
		"TCP is received in bursts":          {map[string]float64{"ingress tcp_32_fastest": 104}, "kept kept kept kept kept kept kept kept"},
		"TCP is not received":                {map[string]float64{"ingress tcp_1_10mbit": 94}, "kept kept kept broken kept kept kept kept"},
		"some flows have more":               {map[string]float64{"container jain_10mbit": 0.98}, "kept kept kept kept broken kept kept kept"},
		"that nobody paces may":              {map[string]float64{"ingress jain_10mbit": 0.5, "ingress retransmits_tcp_1_10mbit": 50}, "kept kept kept kept kept kept kept kept"},
		"a segment is sent again":            {map[string]float64{"egress retransmits_tcp_32_10mbit": 1}, "kept kept kept kept kept broken kept kept"},
		"one that had arrived is sent again": {map[string]float64{"egress retransmits_tcp_32_10mbit": 1, "egress retransmits_needless_tcp_32_10mbit": 1}, "kept kept kept kept kept broken kept kept"},
		"they settle late":                   {map[string]float64{"egress settled_tcp_32_fastest": 310}, "kept kept kept kept kept kept broken kept"},
		"late after others' end":             {map[string]float64{"container settled_stop_10mbit": 310}, "kept kept kept kept kept kept broken kept"},
		"a window has more than 102":         {map[string]float64{"egress highest_tcp_1_10mbit": 102.1}, "kept kept kept kept kept kept kept broken"},
	} {
		l := ratesJudged(t, c.but)
		if got := verdicts(l.result.Claims); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, l.result.Claims)
		}
		for where := range c.but {
			arm, _, _ := strings.Cut(where, " ")
			if strings.Contains(c.want, "broken") && !strings.Contains(l.result.Claims[strings.Count(c.want[:strings.Index(c.want, "broken")], " ")].Evidence, arm) && !strings.Contains(name, "sent again") {
				t.Errorf("%s: the evidence does not say where: %+v", name, l.result.Claims)
			}
		}
	}
}

// What a CPU that was away has to do with it is said, and does not decide.
func TestRatesEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		but  map[string]float64
		want string // of what does not settle in time
	}{
		"nobody looks after the CPUs": {map[string]float64{"egress settled_tcp_1_10mbit": 310},
			"of 12 the furthest: egress, one TCP flow, 10 Mbit/s: median 20, from 20 to 310"},
		"none was away": {map[string]float64{"egress settled_tcp_1_10mbit": 310, "egress here_settled_tcp_1_10mbit": 310, "egress away_settled_tcp_1_10mbit": 0},
			"of 12 the furthest: egress, one TCP flow, 10 Mbit/s: median 20, from 20 to 310 (a CPU away for up to 0 % of the time); with no CPU away it is not so either: of 1 the furthest: egress, one TCP flow, 10 Mbit/s: median 20, from 20 to 310"},
		"one was": {map[string]float64{"egress settled_tcp_1_10mbit": 310, "egress here_settled_tcp_1_10mbit": 20, "egress away_settled_tcp_1_10mbit": 3.5},
			"of 12 the furthest: egress, one TCP flow, 10 Mbit/s: median 20, from 20 to 310 (a CPU away for up to 3.5 % of the time); with no CPU away it is so: of 1 the furthest: egress, one TCP flow, 10 Mbit/s: median 20, from 20 to 20"},
	} {
		claims := ratesJudged(t, c.but).result.Claims
		settles := claims[len(claims)-2]
		if settles.Text != ratesSettle || settles.Kept == nil || *settles.Kept || settles.Evidence != c.want {
			t.Errorf("%s: %+v\nwant broken: %s", name, settles, c.want)
		}
	}
}
