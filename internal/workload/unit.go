package workload

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// unitSuffixes are the kinds of systemd units that have cgroups.
var unitSuffixes = [...]string{".service", ".scope", ".slice", ".socket", ".mount", ".swap"}

// UnitNames returns the names of all systemd units that have a cgroup below a
// mount point now, sorted, each once.
func UnitNames(ctx context.Context, mount string) ([]string, error) {
	patterns := make([]policy.Cgroup, len(unitSuffixes))
	for i, suffix := range unitSuffixes {
		patterns[i].Pattern = "/**/*" + suffix
	}
	found, err := matchCgroups(ctx, mount, patterns)
	if err != nil {
		return nil, fmt.Errorf("list units: %w", err)
	}
	var names []string
	for _, matches := range found {
		for _, m := range matches {
			// systemd puts an underscore before names that could be taken for a
			// control file of a cgroup, or that begin with one.
			names = append(names, strings.TrimPrefix(path.Base(m.Path), "_"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
