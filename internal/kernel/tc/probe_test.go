package tc

import (
	"testing"

	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// TestProbe asks the test bench's own probes, which know of no options.
func TestProbe(t *testing.T) {
	testutil.Needs(t, "root")
	has, unknown := Probe()
	for kind, reason := range unknown {
		t.Errorf("%s is unknown: %s", kind, reason)
	}
	for _, kind := range append(kinds(), probedBands) {
		name := kind + " qdisc"
		if kind == probedBands {
			name = kind
		}
		if want := hasAll(t, name); has[kind] != want {
			t.Errorf("%s: probed %t, want %t", kind, has[kind], want)
		}
	}
	if want := hasAll(t, policeNeeds...); has[Policing] != want {
		t.Errorf("police: probed %t, want %t", has[Policing], want)
	}
	if want := hasAll(t, "htb qdisc", "bfifo qdisc"); has[Weighing] != want {
		t.Errorf("weighing: probed %t, want %t", has[Weighing], want)
	}
	ifb, err := ProbeDetour()
	if err != nil {
		t.Error(err)
	}
	if want := hasAll(t, detourNeeds...); ifb != want {
		t.Errorf("ifb: probed %t, want %t", ifb, want)
	}
}

func hasAll(t *testing.T, features ...string) bool {
	t.Helper()
	for _, name := range features {
		has, err := feature.Has(name)
		if err != nil {
			t.Fatal(err)
		}
		if !has {
			return false
		}
	}
	return true
}

// BenchmarkProbe is what doctor and the first apply after a boot wait for.
func BenchmarkProbe(b *testing.B) {
	testutil.Needs(b, "root")
	for b.Loop() {
		Probe()
	}
}
