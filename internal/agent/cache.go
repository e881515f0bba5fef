package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// cached is a policy that was read before, with what it was read from and by.
type cached struct {
	Version string
	Digest  [sha256.Size]byte
	Policy  policy.Policy
}

// Parse reads a policy as policy.Parse does. The last one that was applied is
// not read again: reading 10,000 workloads is most of the time of an apply that
// changes nothing.
func (a *Agent) Parse(file string, text []byte) (*policy.Policy, error) {
	digest := sha256.Sum256(text)
	if b, err := os.ReadFile(a.cacheFile()); err == nil {
		var c cached
		if gob.NewDecoder(bytes.NewReader(b)).Decode(&c) == nil && c.Version == a.Version && c.Digest == digest {
			c.Policy.File = file
			return &c.Policy, nil
		}
	}
	return policy.Parse(file, text)
}

// parse reads a policy that was applied before: it was valid then.
func (a *Agent) parse(d *state.Document) (*policy.Policy, error) {
	p, err := a.Parse(d.File, []byte(d.Text))
	if err != nil {
		return nil, fmt.Errorf("read the applied policy %s: %w", d.File, err)
	}
	return p, nil
}

// rememberPolicy keeps a policy for the next Parse. That it could not is no error.
func (a *Agent) rememberPolicy(p *policy.Policy, text []byte) {
	var b bytes.Buffer
	c := cached{Version: a.Version, Digest: sha256.Sum256(text), Policy: *p}
	if gob.NewEncoder(&b).Encode(c) != nil {
		return
	}
	temporary := a.cacheFile() + ".new"
	if os.WriteFile(temporary, b.Bytes(), 0o600) == nil {
		_ = os.Rename(temporary, a.cacheFile())
	}
}

// forgetPolicy removes what rememberPolicy kept.
func (a *Agent) forgetPolicy() { _ = os.Remove(a.cacheFile()) }

func (a *Agent) cacheFile() string { return filepath.Join(a.Scope.Run, "policy.cache") }
