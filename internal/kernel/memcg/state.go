package memcg

import (
	"fmt"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Group is a cgroup that was limited, as the kernel has it: of it and of all below it
// together, in bytes.
type Group struct {
	Max     policy.Size // as it was asked for, if the kernel has that; else what it has
	Open    int         // cgroups below it that have another limit, or none
	Used    uint64      // what its sockets hold
	Highest uint64      // the most of that since the cgroup was made
	Failed  uint64      // times that a socket was denied memory, by it or one below
}

// Read reads back the cgroups that were limited; those that are not there are missing. It
// changes nothing.
func (t Tree) Read() (map[string]Group, error) {
	m, err := t.load()
	if err != nil || t.Mount == "" {
		return nil, err
	}
	all, err := t.groups(m)
	if err != nil {
		return nil, err
	}
	found := map[string]Group{}
	for _, at := range all {
		g, err := readGroup(t.Mount + at)
		if absent(err) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read TCP memory of %s: %w", t.Mount+at, err)
		}
		right := same(uint64(g.Max), uint64(m.limitOf(at)))
		if right {
			g.Max = m.limitOf(at)
		}
		for above, of := range found {
			if !strings.HasPrefix(at, above+"/") {
				continue
			}
			if !right {
				of.Open++
			}
			of.Failed += g.Failed // the kernel counts where it fails first
			found[above] = of
		}
		if _, wanted := m.Want[at]; wanted {
			found[at] = g
		}
	}
	return found, nil
}

func readGroup(dir string) (g Group, err error) {
	for file, number := range map[string]*uint64{
		limitFile: (*uint64)(&g.Max), usageFile: &g.Used, highestFile: &g.Highest, failedFile: &g.Failed,
	} {
		if *number, err = readNumber(dir, file); err != nil {
			return Group{}, err
		}
	}
	return g, nil
}
