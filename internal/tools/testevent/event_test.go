package testevent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	const in = `{"Action":"features","Features":{"tcx":true},"Kernel":"6.12.1"}
Kernel panic - not syncing
{"Action":"attr","Package":"p","Test":"A","Key":"promise","Value":"order"}
{"some":"json"}

{"Action":"pass","Package":"p","Test":"A","Elapsed":1.5}`
	var events []Event
	var other strings.Builder
	if err := Read(strings.NewReader(in), &other, func(e Event) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Action: "features", Features: map[string]bool{"tcx": true}, Kernel: "6.12.1"},
		{Action: "attr", Package: "p", Test: "A", Key: "promise", Value: "order"},
		{Action: "pass", Package: "p", Test: "A", Elapsed: 1.5},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	if got, want := other.String(), "Kernel panic - not syncing\n{\"some\":\"json\"}\n"; got != want {
		t.Errorf("passed on %q, want %q", got, want)
	}
}

func TestNeeds(t *testing.T) {
	for out, want := range map[string]string{
		"    a_test.go:3: needs mqprio qdisc\n": "mqprio qdisc",
		"a_test.go:3: flaky":                    "",
		"needs tcx\n--- SKIP":                   "tcx",
	} {
		if got := Needs(out); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}
