package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// A savedPlan is what weir plan -o writes: the policy, what it changes, and what
// that was made against.
type savedPlan struct {
	SchemaVersion string            `json:"schema_version"`
	Kind          string            `json:"kind"`
	Version       string            `json:"version"` // of the Weir that made it
	Made          time.Time         `json:"made"`
	Basis         string            `json:"basis"`
	File          string            `json:"file"`
	Policy        string            `json:"policy"`
	Differences   []plan.Difference `json:"differences"`
}

const savedKind = "weir plan"

// errStale says that a plan does not say any more what would happen.
var errStale = errors.New("the plan is stale")

func save(path string, a *agent.Agent, now time.Time, p *policy.Policy, text []byte, d []plan.Difference) error {
	basis, err := a.Basis()
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(savedPlan{
		schemaVersion, savedKind, version(), now.UTC().Truncate(time.Second), basis, p.File, string(text), d,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return nil
}

// asSavedPlan tells a saved plan from a policy; nil is a policy.
func asSavedPlan(text []byte) *savedPlan {
	var s savedPlan
	if json.Unmarshal(text, &s) != nil || s.Kind != savedKind {
		return nil
	}
	return &s
}

// fresh refuses a plan that was made against something else, or that would
// change something else now.
func (s *savedPlan) fresh(ctx context.Context, a *agent.Agent, p *policy.Policy) error {
	stale := func(why string) error {
		return &hinted{fmt.Errorf("%w: %s since %s", errStale, why, s.Made.Local().Format(time.DateTime)),
			[]string{"look at a new one: weir plan -o FILE " + shellWord(s.File)}}
	}
	if s.Version != version() {
		return stale("weir was " + s.Version + " then and is " + version() + " now; other versions may plan otherwise")
	}
	basis, err := a.Basis()
	if err != nil {
		return err
	}
	if basis != s.Basis {
		return stale("something else was applied, set or reset")
	}
	d, err := a.Plan(ctx, p)
	if err != nil {
		return inPolicy(s.File, []byte(s.Policy), err)
	}
	if !slices.Equal(d, s.Differences) {
		return stale("the host has changed")
	}
	return nil
}
