package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/weir-net/weir/internal/state"
)

// Basis names what a plan is made against: this boot, what is applied, what was
// set beside it and what is half done. Two plans of one policy on one basis
// differ only where the host itself has changed.
func (a *Agent) Basis() (basis string, err error) {
	err = a.reading(func(r *state.Record) error {
		basis, err = basisOf(r)
		return err
	})
	return basis, err
}

func basisOf(r *state.Record) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	var applied state.Document
	if r.Applied != nil {
		applied = *r.Applied
	}
	sum := sha256.New()
	_, _ = io.WriteString(sum, applied.Text) // by itself: escaping a long policy takes longer than all the rest
	applied.Text = ""
	text, err := json.Marshal([]any{string(boot), r.Generation, applied, r.Sets, r.Journal})
	if err != nil {
		return "", fmt.Errorf("name the basis of a plan: %w", err)
	}
	_, _ = sum.Write(text)
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}
