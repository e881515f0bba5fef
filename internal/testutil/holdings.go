package testutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/testutil/feature"
)

// held lists what this process holds: descriptors by what they are, and
// threads in another network namespace than home.
func held(home string) []string {
	var all []string
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n <= 2 {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		// Gone: it was the descriptor of this very listing. The runtime's own
		// poller opens its two when it is first needed and keeps them.
		if err != nil || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" {
			continue
		}
		all = append(all, "descriptor of "+target)
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		// The runtime parks the first thread where it would end another.
		if task.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		if ns, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/net"); err == nil && ns != home {
			all = append(all, "thread in "+ns)
		}
	}
	return all
}

// kernelState lists what Weir's tests can leave in the kernel and that no
// process holds.
func kernelState() []string {
	return append(append(mounts(), links()...), files()...)
}

func mounts() []string {
	var all []string
	text, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, " "); len(f) > 2 && (f[2] == "nsfs" || f[2] == "bpf" || f[2] == "cgroup" || f[2] == "cgroup2") {
			all = append(all, fmt.Sprintf("mount of %s at %s", f[2], f[1]))
		}
	}
	return all
}

func links() []string {
	var all []string
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		all = append(all, fmt.Sprintf("BPF link %d (%T)", it.ID, it.Link))
	}
	return all
}

// files lists pins and Weir's cgroups.
func files() []string {
	roots := map[string]string{"/sys/fs/bpf": "pin "}
	if v2, _ := feature.Cgroup2Mount(); v2 != "" {
		roots[v2] = "cgroup "
	}
	if v1, _ := feature.Cgroup1Mount("net_prio"); v1 != "" {
		roots[v1] = "cgroup "
	}
	var all []string
	for root, what := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return fs.SkipDir
			case what == "pin " && path != root, d.IsDir() && strings.Contains(path, "weir"):
				all = append(all, what+path)
			}
			return nil
		})
	}
	return all
}
