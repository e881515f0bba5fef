package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

// units are the files of systemd's, below a directory that is / on a host.
type units struct{ root string }

// unitDirectories are where systemd looks, in its order.
var unitDirectories = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// find reads a unit and its drop-ins, and returns the name that it has without aliases.
func (u units) find(name string) (string, plan.UnitText, error) {
	for _, known := range []string{name, template(name)} {
		for _, dir := range unitDirectories {
			path := filepath.Join(u.root, dir, known)
			text, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", nil, fmt.Errorf("read unit: %w", err)
			}
			if target, err := filepath.EvalSymlinks(path); err == nil && known == name && filepath.Ext(target) == filepath.Ext(name) {
				name = filepath.Base(target)
			}
			more, err := u.dropIns(name)
			return name, plan.ParseUnit(append([]string{string(text)}, more...)...), err
		}
	}
	return "", nil, &hinted{fmt.Errorf("unit %s: no such unit here", name), []string{"systemctl list-unit-files tells which there are"}}
}

// template is where an instance of a unit comes from: foo@.service of foo@bar.service.
func template(name string) string {
	base, rest, ok := strings.Cut(name, "@")
	if !ok {
		return name
	}
	return base + "@" + filepath.Ext(rest)
}

// dropIns reads those of others, in the order of their names; the first directory has the last word on a name.
func (u units) dropIns(name string) ([]string, error) {
	found := map[string]string{}
	for _, dir := range slices.Backward(unitDirectories) {
		paths, _ := filepath.Glob(filepath.Join(u.root, dir, name+".d", "*.conf"))
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read unit: %w", err)
			}
			if !plan.MadeDropIn(string(text)) {
				found[filepath.Base(path)] = string(text)
			}
		}
	}
	var texts []string
	for _, base := range slices.Sorted(maps.Keys(found)) {
		texts = append(texts, found[base])
	}
	return texts, nil
}

// unitOf finds the unit whose sockets are meant, and notes what is to be said of it.
func (u units) unitOf(word string) (name string, text plan.UnitText, notes []string, err error) {
	if filepath.Ext(word) == "" || !slices.Contains([]string{".service", ".socket", ".timer", ".target", ".mount", ".slice", ".scope", ".path"}, filepath.Ext(word)) {
		word += ".service"
	}
	if name, text, err = u.find(word); err != nil {
		return "", nil, nil, err
	}
	if other := text.ServiceOf(name); other != name {
		notes = append(notes, fmt.Sprintf("%s makes no sockets; it starts %s, which is meant", name, other))
		if name, text, err = u.find(other); err != nil {
			return "", nil, nil, err
		}
	}
	if base, ok := strings.CutSuffix(name, ".service"); ok {
		if _, socket, err := u.find(base + ".socket"); err == nil && socket.Listens() {
			notes = append(notes, fmt.Sprintf("where %s.socket is enabled, it listens in place of %s, and needs weir vrf service %s.socket as well", base, name, base))
		}
	}
	return name, text, notes, nil
}

func (u units) write(path, text string) error {
	path = filepath.Join(u.root, path)
	if was, err := os.ReadFile(path); err == nil && !plan.MadeDropIn(string(was)) {
		return fmt.Errorf("write %s: %w", path, agent.ErrForeignFile)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// removeMade removes a file if it is one of ours.
func removeMade(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !plan.MadeDropIn(string(text)) {
		return nil, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return nil, err
	}
	return []string{path}, nil
}

// installed are the units that have a drop-in of weir vrf service, each with the VRF that it is for.
func (u units) installed() (map[string]string, error) {
	paths, _ := filepath.Glob(filepath.Join(u.root, unitDirectories[0], "*.d", plan.DropInName))
	found := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read unit: %w", err)
		}
		if vrf := plan.DropInVRF(string(text)); vrf != "" {
			found[strings.TrimSuffix(filepath.Base(filepath.Dir(path)), ".d")] = vrf
		}
	}
	return found, nil
}

// orphans are the findings about units that weir vrf service keeps for VRFs that are not here.
func (c *cli) orphans() ([]plan.Finding, error) {
	installed, err := units{c.files}.installed()
	if err != nil || len(installed) == 0 {
		return nil, err
	}
	known, err := c.knownVRFs()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(plan.VRFServices(known, installed), func(f plan.Finding) bool { return f.State == plan.FindingOK }), nil
}
