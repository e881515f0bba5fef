package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// Facts gathers what a policy needs to know of this host. What it could not
// look at without privileges comes back in words.
func (a *Agent) Facts(ctx context.Context, p *policy.Policy) (plan.Facts, []string, error) {
	var f plan.Facts
	var skipped []string
	err := a.inScope(func() (err error) {
		missing, err := host.MissingCapabilities()
		if err != nil {
			return err
		}
		f.Root = len(missing) == 0
		if f.Links, err = host.Links(ctx); err != nil {
			return err
		}
		if skipped, err = workload.Facts(ctx, p, &f); err != nil {
			return err
		}
		if f.Root {
			f.Features = a.features(ctx)
		} else {
			skipped = append(skipped, "what this kernel can do: probing needs "+strings.Join(missing, ", "))
		}
		f.Parents1, err = parents1(p, f)
		return err
	})
	return f, skipped, err
}

// probed is what a boot's probes found.
type probed struct {
	Boot     string        `json:"boot"`
	Version  string        `json:"version"`
	Features plan.Features `json:"features"`
}

// features probes the kernel, once per boot: what a kernel can do does not
// change under it, and the probes would be most of the time of an apply.
func (a *Agent) features(ctx context.Context) plan.Features {
	file := filepath.Join(a.Scope.Run, "features.json")
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var have probed
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &have) == nil &&
		have.Boot == string(boot) && have.Version == a.Version {
		return have.Features
	}
	features := a.Probe(ctx)
	if b, err := json.Marshal(probed{string(boot), a.Version, features}); err == nil {
		_ = os.WriteFile(file, b, 0o644) // only spares the next probe
	}
	return features
}

// Probe asks the kernel what it can do, now.
func (a *Agent) Probe(ctx context.Context) plan.Features {
	features := host.Probe(ctx)
	has, unknown := tc.Probe()
	features.Qdiscs = has
	if features.Unknown == nil {
		features.Unknown = map[string]string{}
	}
	for kind, why := range unknown {
		features.Unknown[kind+" qdisc"] = why
	}
	return features
}

// parents1 returns the tree of the v1 hierarchy that the policy names, so that
// a claim on a cgroup holds for all below it: id -> id of the parent.
func parents1(p *policy.Policy, f plan.Facts) (map[uint64]uint64, error) {
	controller := ""
	for _, w := range p.Workloads {
		for _, s := range w.Match {
			if s.Cgroup.Controller != "" {
				controller = s.Cgroup.Controller
			}
		}
	}
	mount := f.Cgroup1[controller]
	if controller == "" || mount == "" {
		return nil, nil
	}
	parents := map[uint64]uint64{}
	ids := map[string]uint64{}
	err := filepath.WalkDir(mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a cgroup that went away meanwhile
		}
		id, err := workload.CgroupID(path)
		if err != nil {
			return nil
		}
		ids[path] = id
		parents[id] = ids[filepath.Dir(path)]
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walk v1 hierarchy %s: %w", controller, err)
	}
	return parents, nil
}

// hierarchy1 returns the number of a v1 controller's hierarchy, 0 if none.
func hierarchy1(controller string) (int, error) {
	if controller == "" {
		return 0, nil
	}
	b, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		return 0, fmt.Errorf("read v1 hierarchies: %w", err)
	}
	for line := range bytes.Lines(b) {
		var name string
		var number int
		if n, _ := fmt.Sscan(string(line), &name, &number); n == 2 && name == controller {
			return number, nil
		}
	}
	return 0, fmt.Errorf("read v1 hierarchies: no controller %q", controller)
}
