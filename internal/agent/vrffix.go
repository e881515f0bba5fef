package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-net/weir/internal/plan"
)

// ErrNoServer says that no name server answers in a VRF.
var ErrNoServer = errors.New("no name server answers in the VRF")

// ErrForeignFile says that a file is somebody else's, and is left as it is.
var ErrForeignFile = errors.New("not made by Weir, and left as it is")

// FixLookups gives a VRF a resolv.conf of its own: with the servers that are given, or else with
// those of systemd-resolved, or else of the host's file, that answer in the VRF. It returns the servers.
func (a *Agent) FixLookups(r Resolver, netns, vrf string, given []netip.Addr) ([]netip.Addr, error) {
	if netns == "" {
		netns = a.Scope.Netns
	}
	l, err := r.lookups(vrf, netns)
	if err != nil {
		return nil, err
	}
	text, _, err := r.hostFile(netns)
	if err != nil {
		return nil, fmt.Errorf("read name servers: %w", err)
	}
	servers, rest := plan.ParseResolvConf(string(text))
	if len(l.Upstream) > 0 {
		servers = l.Upstream
	}
	if len(given) > 0 {
		servers = given
	}
	asked := make([]plan.VRFServer, 0, len(servers))
	for _, s := range servers {
		asked = append(asked, plan.VRFServer{Address: s})
	}
	if err := askAll(netns, vrf, asked); err != nil {
		return nil, err
	}
	var answer []netip.Addr
	var why []string
	for _, s := range asked {
		if s.Answers {
			answer = append(answer, s.Address)
		} else {
			why = append(why, fmt.Sprintf("%s: %s", s.Address, s.Why))
		}
	}
	if len(answer) == 0 {
		if len(why) == 0 {
			why = []string{"none is known"}
		}
		return nil, fmt.Errorf("%w (%s)", ErrNoServer, strings.Join(why, "; "))
	}
	answer = answer[:min(len(answer), plan.MaxServers)]
	return answer, writeOwn(r.VRFFile(vrf), plan.ResolvConf(answer, rest))
}

// writeOwn writes a file of ours in one step.
func writeOwn(path, text string) error {
	was, err := os.ReadFile(path)
	if err == nil && !plan.MadeResolvConf(string(was)) {
		return fmt.Errorf("write %s: %w", path, ErrForeignFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write name servers: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write name servers: %w", err)
	}
	part := path + ".part"
	if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write name servers: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write name servers: %w", err)
	}
	return nil
}

// UndoLookups removes what [Agent.FixLookups] made for a VRF, or with "" for all, and returns the paths.
// Files of others are left, and what is absent is fine.
func (r Resolver) UndoLookups(vrf string) ([]string, error) {
	pattern := r.VRFFile("*")
	if vrf != "" {
		pattern = r.VRFFile(vrf)
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("list name servers: %w", err)
	}
	var removed []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return removed, fmt.Errorf("remove name servers: %w", err)
		}
		if !plan.MadeResolvConf(string(text)) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return removed, fmt.Errorf("remove name servers: %w", err)
		}
		removed = append(removed, path)
		// The directories go with the last file in them.
		for dir := filepath.Dir(path); dir != filepath.Join(r.Root, "/etc"); dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break
			}
		}
	}
	return removed, nil
}
