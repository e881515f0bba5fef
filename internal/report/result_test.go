package report

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResultJSON(t *testing.T) {
	r := Result{
		SchemaVersion: SchemaVersion, Lab: "ssh", Version: "v1", Kernel: "6.1", Started: "2026-01-02T03:04:05Z", Seconds: 41.2,
		Arms:   []Arm{{Name: "alone", Metrics: map[string]Metric{"copy_seconds": {Median: 7, Min: 6.9, Max: 7.1, N: 5, Unit: "s"}}}},
		Ratios: map[string]Ratio{"prioritised_over_alone": {Value: 1.01, Low: 1, High: 1.03}},
		Claims: []Claim{Kept("holds", true, "seen"), Kept("breaks", false, "seen too"), Unproven("unknown", "no mqprio")},
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	// The form is a promise to every reader of --json: keys, order and nothing else.
	const want = `{"schema_version":"1.0","lab":"ssh","version":"v1","kernel":"6.1","started":"2026-01-02T03:04:05Z","seconds":41.2,` +
		`"arms":[{"name":"alone","metrics":{"copy_seconds":{"median":7,"min":6.9,"max":7.1,"n":5,"unit":"s"}}}],` +
		`"ratios":{"prioritised_over_alone":{"value":1.01,"low":1,"high":1.03}},` +
		`"claims":[{"text":"holds","kept":true,"evidence":"seen"},{"text":"breaks","kept":false,"evidence":"seen too"},` +
		`{"text":"unknown","kept":null,"evidence":"no mqprio"}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("it does not survive its own form: %s", diff)
	}
}
