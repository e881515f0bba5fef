package lab

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

func TestJain(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string]uint64
		want          float64
	}{
		"nobody":            {nil, nil, 0},
		"all alike":         {map[string]uint64{"a": 5, "b": 10}, map[string]uint64{"a": 105, "b": 110}, 1},
		"one has all":       {nil, map[string]uint64{"a": 100, "b": 0, "c": 0, "d": 0}, 0.25},
		"one has thrice":    {nil, map[string]uint64{"a": 300, "b": 100}, 0.8},
		"one that is fresh": {map[string]uint64{"a": 100}, map[string]uint64{"a": 200, "b": 100}, 1},
	} {
		if got := jain(c.before, c.after); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// Each arm's policy is one that the parser takes, with the limit where it belongs.
func TestRatesPolicies(t *testing.T) {
	s, err := newSession(experimentOf(t, "rates"), Options{Controller: newRawController("")})
	if err != nil {
		t.Fatal(err)
	}
	l := &ratesLab{session: s, sends: `cgroup: "/a/sends"`, receives: `cgroup: "/a/receives"`, wires: make([]rateWire, 1)}
	l.wires[0].near.Device, l.wires[0].far.Device = "near", "far"
	const limit = 24_000_000_000
	for _, arm := range ratesInfo.Arms {
		p, err := policy.Parse("rates.yaml", []byte(l.policy(arm, 0, limit)))
		if err != nil {
			t.Errorf("%s: %v", arm, err)
			continue
		}
		var got policy.Rate
		switch arm {
		case ofSender:
			got = p.Workloads[0].Contract.Egress.Max
		case ofContainer:
			got = p.Links[0].Ingress.Max
		case ofReceiver, ofAnswers, ofClasses:
			got = p.Workloads[0].Contract.Ingress.Max
		}
		if got != limit {
			t.Errorf("%s: at most %s", arm, got)
		}
	}
}

func TestRatesLabTakesNoScheduler(t *testing.T) {
	_, err := Run(context.Background(), "rates", Options{Controller: newRawController(""), Scheduler: policy.HTB})
	if err == nil || !strings.Contains(err.Error(), "run lab rates: scheduler htb: ") {
		t.Errorf("got %v", err)
	}
}
