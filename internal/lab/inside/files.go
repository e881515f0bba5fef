package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// mountSource is what the mounts of a place are of.
const mountSource = "weir-lab"

// linked is what programs need of the host's /etc to find their libraries.
var linked = []string{"/etc/ld.so.cache", "/etc/ld-musl-*.path"}

// furnish puts an /etc and a /run of the place's own over the host's, in this mount namespace, of
// which the host sees nothing.
func (f Files) furnish() error {
	texts, err := keptTexts()
	if err != nil {
		return err
	}
	maps.Copy(texts, f.Texts)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts from the host: %w", err)
	}
	for _, dir := range []string{"/etc", "/run"} {
		if err := unix.Mount(mountSource, dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=16m"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(texts[path]), 0o644); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f.Links)) {
		if err := os.Symlink(f.Links[path], path); err != nil {
			return err
		}
	}
	return nil
}

// keptTexts reads the files of the host that the place has too.
func keptTexts() (map[string]string, error) {
	texts := map[string]string{}
	for _, pattern := range linked {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read what programs need: %w", err)
			}
			texts[path] = string(text)
		}
	}
	return texts, nil
}
