package feature

import (
	"errors"
	"fmt"
	"sync"
)

// ErrUnknown is returned by [Has] for a name that no probe answers to.
var ErrUnknown = errors.New("unknown feature")

// errAbsent is what a probe returns when it has seen that the feature is not
// there. Any other error means that the probe could not tell.
var errAbsent = errors.New("absent")

// A probe tries one feature: nil is present, errAbsent absent.
type probe func() error

var (
	mu    sync.Mutex
	cache = map[string]error{}
)

// Has reports whether the named feature is present here. The error is
// [ErrUnknown] for a name without a probe, or says why a probe could not
// tell, which is what most of them do without root. Answers are remembered for
// the life of the process.
func Has(name string) (bool, error) {
	p, ok := table()[name]
	if !ok {
		return false, fmt.Errorf("probe %q: %w", name, ErrUnknown)
	}
	mu.Lock()
	defer mu.Unlock()
	err, ok := cache[name]
	if !ok {
		err = p()
		cache[name] = err
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errAbsent):
		return false, nil
	}
	return false, fmt.Errorf("probe %q: %w", name, err)
}
