package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// matchCgroups finds the cgroups below a mount point that match patterns, in
// one walk for all of them. The patterns are of that hierarchy; their
// Controller is not looked at. A pattern without a match is not in the result;
// matches are in the order of their paths. Cgroups that come or go during the
// walk may be in the result or not.
func matchCgroups(ctx context.Context, mount string, patterns []policy.Cgroup) (map[policy.Cgroup][]plan.CgroupMatch, error) {
	root := newPatternNode()
	for _, p := range distinct(patterns) {
		root.add(p)
	}
	w := walker{ctx: ctx, mount: strings.TrimSuffix(mount, "/"), buffer: make([]byte, 64<<10)}
	found := make(map[policy.Cgroup][]plan.CgroupMatch)
	w.visit = func(path string, at reached) error {
		matches := at.matches()
		if len(matches) == 0 {
			return nil
		}
		id, err := CgroupID(w.mount + path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, p := range matches {
			found[p] = append(found[p], plan.CgroupMatch{Path: path, ID: id})
		}
		return nil
	}
	if err := w.walk("/", root.start()); err != nil {
		return nil, fmt.Errorf("walk cgroups: %w", err)
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b plan.CgroupMatch) int { return strings.Compare(a.Path, b.Path) })
	}
	return found, nil
}

// A walker goes down one hierarchy as far as patterns can match.
type walker struct {
	ctx    context.Context
	mount  string // without a slash at the end
	buffer []byte
	visit  func(path string, at reached) error
}

func (w *walker) walk(path string, at reached) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.visit(path, at); err != nil {
		return err
	}
	if at.dead() {
		return nil
	}
	children, err := w.children(path, at)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	prefix := path
	if prefix != "/" {
		prefix += "/"
	}
	for _, name := range children {
		next := at.step(name)
		if len(next.nodes) == 0 && len(next.below) == 0 {
			continue
		}
		if err := w.walk(prefix+name, next); err != nil {
			return err
		}
	}
	return nil
}

// children lists the child cgroups that can matter to the state.
func (w *walker) children(path string, at reached) ([]string, error) {
	dir := w.mount + path
	if names, ok := at.names(); ok {
		return slices.DeleteFunc(names, func(name string) bool {
			var st unix.Stat_t
			err := unix.Lstat(strings.TrimSuffix(dir, "/")+"/"+name, &st)
			return err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR
		}), nil
	}
	// kernfs counts the subdirectories in the number of links: a leaf, as most
	// cgroups are, need not be opened and read through its control files.
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if st.Nlink == 2 {
		return nil, nil
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	names := make([]string, 0, st.Nlink)
	for {
		n, err := unix.Getdents(fd, w.buffer)
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: dir, Err: err}
		}
		if n == 0 {
			return names, nil
		}
		names = appendDirectories(names, w.buffer[:n])
	}
}
