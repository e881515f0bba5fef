package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// Facts fills in what a policy's selectors mean on this host: Cgroup2, Cgroup1,
// Users, Exes, PIDs, Cgroups, UserNames and, if the policy names units,
// UnitNames. It needs no root. What it could not look at is skipped, in words
// for the user, and is absent from into as if it did not exist.
func Facts(ctx context.Context, p *policy.Policy, into *plan.Facts) (skipped []string, err error) {
	f := facts{ctx: ctx, into: into}
	mounts, err := FindHierarchies()
	if err != nil {
		return nil, err
	}
	into.Cgroup2, into.Cgroup1 = mounts.V2, mounts.V1
	into.Users = make(map[string]uint32)
	into.Exes = make(map[string]plan.ExeID)
	into.PIDs = make(map[uint32]bool)
	into.Cgroups = make(map[policy.Cgroup][]plan.CgroupMatch)
	if f.users, err = readPasswd(); err != nil {
		f.skip("names of users: %v", err)
	}
	into.UserNames = slices.Sorted(maps.Keys(f.users))
	for _, w := range p.Workloads {
		for _, s := range w.Match {
			f.selector(s)
		}
	}
	if err := f.processes(); err != nil {
		return nil, err
	}
	if err := f.cgroups(mounts); err != nil {
		return nil, err
	}
	return f.skipped, nil
}

type facts struct {
	ctx      context.Context
	into     *plan.Facts
	users    map[string]string // of /etc/passwd
	devices  devices
	pids     []uint32
	patterns []policy.Cgroup
	units    map[string]bool // controllers of the hierarchies in which units are named
	skipped  []string
}

func (f *facts) skip(format string, args ...any) {
	f.skipped = append(f.skipped, fmt.Sprintf(format, args...))
}

// selector looks at what costs one look, and collects the rest.
func (f *facts) selector(s policy.Selector) {
	switch s.Kind {
	case policy.KindPID:
		f.pids = append(f.pids, s.PID)
	case policy.KindUnit:
		if f.units == nil {
			f.units = make(map[string]bool)
		}
		f.units[s.Cgroup.Controller] = true
		f.patterns = append(f.patterns, s.Cgroup)
	case policy.KindCgroup:
		f.patterns = append(f.patterns, s.Cgroup)
	case policy.KindUser:
		if uid, ok := userID(s.User, f.users); ok {
			f.into.Users[s.User] = uid
		}
	case policy.KindExe:
		if _, known := f.into.Exes[s.Exe]; known {
			return
		}
		id, err := f.devices.id(unix.AT_FDCWD, s.Exe, nil)
		switch {
		case err == nil:
			f.into.Exes[s.Exe] = id
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			f.skip("executable %s: %v", s.Exe, err)
		}
	}
}

func (f *facts) processes() error {
	if len(f.pids) == 0 {
		return nil
	}
	if err := CheckPIDNamespace(); errors.Is(err, ErrPIDNamespace) {
		f.skip("processes: %v", ErrPIDNamespace)
		return nil
	} else if err != nil {
		return err
	}
	for _, pid := range f.pids {
		if isRunning(pid) {
			f.into.PIDs[pid] = true
		}
	}
	return nil
}

// isRunning reports whether there is a process that has not exited.
func isRunning(pid uint32) bool {
	dir, err := openProc(pid)
	if err != nil {
		return false
	}
	defer dir.close()
	stat, err := dir.stat()
	if err != nil || stat.exited() {
		return false
	}
	// /proc/TID exists for every thread.
	status, err := dir.status()
	return err == nil && status.process == pid
}

// cgroups walks each hierarchy that the policy names once.
func (f *facts) cgroups(mounts Hierarchies) error {
	byController := make(map[string][]policy.Cgroup)
	var order []string
	for _, p := range f.patterns {
		if byController[p.Controller] == nil {
			order = append(order, p.Controller)
		}
		byController[p.Controller] = append(byController[p.Controller], p)
	}
	for _, controller := range order {
		mount, ok := mounts.Mount(controller)
		if !ok {
			f.skip("%s: not mounted", hierarchyWord(controller))
			continue
		}
		err := f.hierarchy(mount, controller, byController[controller])
		if errors.Is(err, fs.ErrPermission) {
			f.skip("%s: no permission", hierarchyWord(controller))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *facts) hierarchy(mount, controller string, patterns []policy.Cgroup) error {
	found, err := matchCgroups(f.ctx, mount, patterns)
	if err != nil {
		return err
	}
	maps.Copy(f.into.Cgroups, found)
	if !f.units[controller] {
		return nil
	}
	names, err := UnitNames(f.ctx, mount)
	f.into.UnitNames = append(f.into.UnitNames, names...)
	return err
}

func hierarchyWord(controller string) string {
	if controller == "" {
		return "cgroups of the v2 hierarchy"
	}
	return "cgroups of the v1 hierarchy " + controller
}
