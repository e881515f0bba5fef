package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// resolverMount is the source by which what [MountResolver] hides is known.
const resolverMount = "weir-vrf"

// hiddenSockets are directories of services that look names up for other programs, and do so
// outside of any VRF: systemd-resolved's, whose resolv.conf is here as well, and nscd's.
var hiddenSockets = []string{"/run/systemd/resolve", "/run/nscd"}

// MountResolver gives the calling thread, and the program that it becomes, another
// /etc/resolv.conf: in a mount namespace of its own, which follows the mounts of the host. Services that
// would look names up elsewhere can not be reached there. With "" it takes back what it did further up; where there
// is nothing to do it does nothing. The thread must be locked, and stays in the namespace.
func MountResolver(file string) error {
	before, err := resolverMounts()
	if err != nil {
		return err
	}
	if file == "" && len(before) == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts from the host: %w", err)
	}
	for _, point := range before {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	if file == "" {
		return nil
	}
	// Opened before its directory may be hidden.
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return fmt.Errorf("find /etc/resolv.conf: %w", err)
	}
	for _, dir := range hiddenSockets {
		if err := hide(dir); err != nil {
			return err
		}
	}
	// The link may have led into what is hidden now: the files there are to be ours, too.
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	if f, err := os.OpenFile(target, os.O_CREATE, 0o644); err == nil {
		f.Close()
	}
	if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", file, target, err)
	}
	// So that nobody writes through it who means the host's.
	if err := unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// hide puts an empty directory over one, if it is there.
func hide(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := unix.Mount(resolverMount, dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("hide %s: %w", dir, err)
	}
	return nil
}

// resolverMounts are the places of what MountResolver has mounted in this mount namespace, the last first.
func resolverMounts() (points []string, err error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		front, back, _ := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(front), strings.Fields(back)
		if len(fields) < 5 || len(kind) < 2 {
			continue
		}
		ours := kind[1] == resolverMount || strings.Contains(fields[3], "/weir/vrf/") && strings.HasSuffix(fields[3], "/resolv.conf")
		if ours {
			points = append([]string{fields[4]}, points...)
		}
	}
	return points, nil
}
