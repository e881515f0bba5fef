package agent

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// parents1 returns the tree of the v1 hierarchy that the policy names, so that
// a claim on a cgroup holds for all below it: id -> id of the parent.
func parents1(ctx context.Context, p *policy.Policy, f plan.Facts) (map[uint64]uint64, error) {
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
		if ctx.Err() != nil {
			return ctx.Err()
		}
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
