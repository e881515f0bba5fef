package agent

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// What is remembered of a policy is the policy: of every example, and of a text
// that is another nothing.
func TestParseRemembers(t *testing.T) {
	examples, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	a := &Agent{Scope: state.Scope{Run: t.TempDir()}, Version: "1"}
	for _, file := range examples {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := policy.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		a.rememberPolicy(want, text)
		got, err := a.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
		if _, err := a.Parse(file, append(text, "unknown: key\n"...)); err == nil {
			t.Errorf("%s: another text was taken for it", file)
		}
		other := &Agent{Scope: a.Scope, Version: "2"}
		if err := os.WriteFile(a.cacheFile(), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := other.Parse(file, text); err != nil || len(got.Workloads) != len(want.Workloads) {
			t.Errorf("%s: beside a damaged file: %v", file, err)
		}
	}
}
