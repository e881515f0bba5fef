package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/weir-net/weir/internal/state"
)

// Basis names what a plan is made against: this boot, what is applied, what was
// set beside it and what is half done. Two plans of one policy on one basis
// differ only where the host itself has changed.
func (a *Agent) Basis() (string, error) {
	var basis string
	err := a.reading(func(r *state.Record) error {
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			return fmt.Errorf("read boot id: %w", err)
		}
		text, err := json.Marshal([]any{string(boot), r.Generation, r.Applied, r.Sets, r.Journal})
		if err != nil {
			return fmt.Errorf("name the basis of a plan: %w", err)
		}
		sum := sha256.Sum256(text)
		basis = hex.EncodeToString(sum[:16])
		return nil
	})
	return basis, err
}
