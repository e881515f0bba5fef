package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// TestSetAnswers gives a running download a limit for which its answers wait, beside a policy: where links keep times of
// departure, and nowhere else. It goes to windows and back, and applies keep what it needs.
func TestSetAnswers(t *testing.T) {
	needsAnswers(t)
	const limit = policy.Rate(10e6)
	for _, name := range []string{"process", "cgroup"} {
		if testing.Short() && name == "cgroup" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			bare := b.timed("{}", "  other: {match: [{port: 9}], priority: 3}\n")
			b.apply(t, bare)
			give, _ := b.downloading(t, name, "40M")
			most := limit
			waits, asks := Terms{MaxIngress: &most, ByIngress: policy.MethodEDT}, Terms{MaxIngress: &most, ByIngress: policy.MethodPace}
			if err := give(waits); !errors.Is(err, ErrNoTimes) || !strings.Contains(err.Error(), b.link.Name) {
				t.Errorf("where no link keeps times: %v", err)
			}
			if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 {
				t.Errorf("after the refusal: %+v", s)
			}
			b.apply(t, bare+fmt.Sprintf("  edt: {match: [{cgroup: %s/edt}], ingress: {max: 50Mbit, method: edt}}\n", b.cgroup))
			held := func(terms, told string) {
				t.Helper()
				rate, max := 0.0, float64(limit)/1e6
				for range 3 { // what was lost at the beginning counts when it has come again
					time.Sleep(2 * time.Second) // for what a full bucket lets through
					rate = b.downloaded(t, 3*time.Second) * segmentWire
					t.Logf("%s: %.2f Mbit/s", told, rate)
					if rate >= 0.9*max {
						break
					}
				}
				s := status(t, b.Agent)
				if !s.OK || len(s.Sets) != 1 || s.Sets[0].Terms != terms {
					t.Errorf("%s: want a set of %s, status is %+v", told, terms, s)
				}
				if rate < 0.9*max || rate > (1.02+collected(3))*max {
					t.Errorf("%s: %.2f of %g Mbit/s", told, rate, max)
				}
			}
			do := func(terms Terms) {
				t.Helper()
				if err := give(terms); err != nil {
					t.Fatal(err)
				}
			}
			do(waits)
			held("ingress at most 10Mbit by edt", "answers wait")
			do(asks)
			held("ingress at most 10Mbit", "by windows")
			do(Terms{MaxIngress: &most})
			held("ingress at most 10Mbit", "answers wait where links keep times already")
			if s := status(t, b.Agent); !slices.ContainsFunc(s.Promises, func(j plan.Judgement) bool { return strings.HasPrefix(j.Evidence, "read back: at most 10Mbit by edt;") }) {
				t.Errorf("none is held by edt: %+v", s.Promises)
			} else if _, received, err := b.howLimited(t.Context(), record(t, b.Agent)); name == "cgroup" && (err != nil || received[s.Sets[0].Name].Method != policy.MethodEDT) {
				t.Errorf("explain tells of %v, %v", received, err)
			}
			do(waits)
			if d := b.apply(t, bare); len(d) == 0 {
				t.Error("an apply without the policy's own limit changes nothing")
			}
			held("ingress at most 10Mbit by edt", "after an apply")
			if again := b.apply(t, bare); len(again) != 0 {
				t.Errorf("applied again: %v", again)
			}
			refusal := map[string]string{"process": "no way to hold its ingress limit: ", "cgroup": "method edt can not hold its ingress: "}[name]
			var errs policy.Errors
			if _, err := b.tryApply(b.timed("{scheduler: none}", "  other: {match: [{port: 9}], priority: 3}\n")); !errors.As(err, &errs) || !strings.Contains(err.Error(), refusal) {
				t.Errorf("an apply that takes the times away: %v", err)
			}
			do(Terms{MaxIngress: new(policy.Rate)})
			b.apply(t, bare)
			if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 || strings.Contains(s.Links[0].Queue, "times of departure") {
				t.Errorf("without the limit: %+v", s)
			}
		})
	}
}
