package netprio

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Remove puts the processes back, removes the groups that Apply made, gives the
// others their maps back, and unmounts the hierarchy if Apply mounted it. What
// is absent already is no error.
func (t Tree) Remove() error {
	m, known, err := t.load()
	if err != nil || !known {
		return err
	}
	if lives, err := hierarchyLives(); err != nil {
		return err
	} else if lives { // else nothing is left to undo, as after a reboot
		if err := t.exclusively(func() error { return t.removeAll(m) }); err != nil {
			return err
		}
		if m.Mounted {
			if err := unmount(m.Mount); err != nil {
				return err
			}
		}
	}
	if m.MadePoint {
		if err := os.Remove(m.Mount); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove mount point: %w", err)
		}
	}
	if err := os.Remove(t.memoryPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove net_prio state: %w", err)
	}
	return nil
}

// removeAll mounts the hierarchy again where others have unmounted it: as long as
// it has groups it lives, and our processes keep their priorities.
func (t Tree) removeAll(m *memory) error {
	if err := t.ensureMount(m, true); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Want)) {
		if err := t.removeGroup(m, name); err != nil {
			return err
		}
	}
	for _, dir := range slices.Backward(slices.Clone(m.Made)) {
		if err := removeDir(m.Mount + dir); err != nil {
			// Others have put groups or processes into our base: theirs.
			if errors.Is(err, unix.EBUSY) && dir == path.Join("/", t.Base) {
				continue
			}
			return err
		}
	}
	return nil
}

// removeGroup puts the processes of a group back and undoes what Apply did to
// it.
func (t Tree) removeGroup(m *memory, name string) error {
	dir := t.group(name)
	ours := m.made(dir)
	if err := t.empty(m, dir, ours); err != nil {
		return err
	}
	if ours {
		if err := removeDir(m.Mount + dir); err != nil {
			return err
		}
		m.Made = slices.DeleteFunc(m.Made, func(made string) bool { return made == dir })
	} else if before, ok := m.Before[dir]; ok {
		err := writeMap(m.Mount+dir, func(link string) uint32 { return before[link] })
		if err != nil && !absent(err) {
			return err
		}
		delete(m.Before, dir)
	}
	delete(m.Want, name)
	return t.save(m)
}

// empty moves the processes of a group back to where they were: all of them,
// or only those that Assign moved if others put processes there too. Children
// are born into the group meanwhile, so it looks again until nobody is left.
func (t Tree) empty(m *memory, dir string, all bool) error {
	for {
		pids, err := readProcs(m.Mount + dir)
		if err != nil {
			if absent(err) {
				return nil
			}
			return err
		}
		moved := false
		for _, pid := range pids {
			p, err := readProcess(pid)
			if errors.Is(err, ErrGone) {
				continue
			}
			if err != nil {
				return err
			}
			if was, ok := m.Moved[pid]; !all && (!ok || was.Start != p.start) {
				continue
			}
			if t.origin(m, pid, p) == dir { // where others had put it
				continue
			}
			if err := t.putBack(m, pid, p); err != nil {
				return err
			}
			moved = true
		}
		if !moved {
			return nil
		}
	}
}

// removeDir removes a group. A process that has just exited leaves it a moment
// later, so EBUSY is tried again for a second.
func removeDir(dir string) error {
	deadline := time.Now().Add(time.Second)
	for {
		err := unix.Rmdir(dir)
		if err == nil || absent(err) {
			return nil
		}
		if err != unix.EBUSY || time.Now().After(deadline) {
			return fmt.Errorf("remove net_prio group %s: %w", dir, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// unmount waits until the kernel has freed the removed groups, which it does
// behind our back: a hierarchy that is unmounted with children in it, dying
// ones included, stays, and holds the controller. Where others have groups it
// stays anyway.
func unmount(mount string) error {
	deadline := time.Now().Add(time.Second)
	for !hasGroups(mount) && cgroupCount() > 1 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := unix.Unmount(mount, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount net_prio at %s: %w", mount, err)
	}
	return nil
}

// hasGroups reports whether there is a group below a directory.
func hasGroups(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, fs.DirEntry.IsDir)
}

// cgroupCount is the number of cgroups in the hierarchy, its root included, the
// dying ones too.
func cgroupCount() (count int) {
	content, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, controller+"\t"); ok {
			var hierarchy int
			_, _ = fmt.Sscan(rest, &hierarchy, &count)
		}
	}
	return count
}
