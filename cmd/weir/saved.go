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

func save(path string, a *agent.Agent, now time.Time, p policyFile, d []plan.Difference) error {
	basis, err := a.Basis()
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(savedPlan{
		schemaVersion, savedKind, version(), now.UTC().Truncate(time.Second), basis, p.File, string(p.text), d,
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

// request reads what apply is to put into force: a policy, or a saved plan and the
// policy in it.
func (c *cli) request(ctx context.Context, file string) (policyFile, *savedPlan, error) {
	text, err := c.read(ctx, file)
	if err != nil {
		return policyFile{}, nil, fmt.Errorf("read policy: %w", err)
	}
	name, planned := nameOf(file), asSavedPlan(text)
	if planned != nil {
		name, text = planned.File, []byte(planned.Policy)
	}
	p, err := c.parse(name, text)
	return p, planned, err
}

// fresh refuses a plan that was made against something else, or that would
// change something else now.
func (s *savedPlan) fresh(now agent.Proposal) error {
	stale := func(why string) error {
		return &hinted{fmt.Errorf("%w: %s since %s", errStale, why, s.Made.Local().Format(time.DateTime)),
			[]string{"look at a new one: weir plan -o PLAN " + fileWord(s.File)}}
	}
	if s.Version != version() {
		return stale("weir was " + s.Version + " then and is " + version() + " now; other versions may plan otherwise")
	}
	if now.Basis != s.Basis {
		return stale("something else was applied, set or reset")
	}
	if !slices.Equal(now.Differences, s.Differences) {
		return stale("the host has changed")
	}
	return nil
}
