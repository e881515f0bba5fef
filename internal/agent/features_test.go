package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// What was probed is taken for known on the same kernel only, with the same
// modules, and by the same Weir.
func TestFeaturesAreRemembered(t *testing.T) {
	const mark = "marked" // a kind of qdisc that no probe finds
	a := &Agent{Scope: state.Scope{Run: t.TempDir()}, Version: "1"}
	now := probed{bootID(), loadedModules(), "1", plan.Features{Qdiscs: map[string]bool{mark: true}}}
	for _, c := range []struct {
		name string
		edit func(*probed)
		want bool
	}{
		{"the same", func(*probed) {}, true},
		{"another boot", func(p *probed) { p.Boot += "x" }, false},
		{"another module", func(p *probed) { p.Modules = []byte("another") }, false},
		{"another version", func(p *probed) { p.Version = "2" }, false},
	} {
		p := now
		c.edit(&p)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(a.Scope.Run, "features.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := a.features(context.Background()).Qdiscs[mark]; got != c.want {
			t.Errorf("%s: taken for known: %v", c.name, got)
		}
	}
}

// What a probe could not find out is not remembered.
func TestUnknownFeaturesAreAskedAgain(t *testing.T) {
	a := &Agent{Scope: state.Scope{Run: t.TempDir()}, Version: "1"}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if f := a.features(ended); len(f.Unknown) == 0 {
		t.Fatal("a probe that was not made knows everything")
	}
	if _, err := os.Stat(filepath.Join(a.Scope.Run, "features.json")); !os.IsNotExist(err) {
		t.Errorf("it is remembered: %v", err)
	}
}
