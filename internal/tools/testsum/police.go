package main

import (
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/tools/testevent"
)

// police returns the feature that a skipped test named in its output. A skip
// that names none, or one that is there, is an error: the test should have run.
func police(output string, has func(string) (bool, error)) (string, error) {
	feature := testevent.Needs(output)
	if feature == "" {
		return "", errors.New(`skipped without saying "needs FEATURE"`)
	}
	ok, err := has(feature)
	if err != nil {
		return "", fmt.Errorf("skipped for %q: %w", feature, err)
	}
	if ok {
		return "", fmt.Errorf("skipped for %q, which is there", feature)
	}
	return feature, nil
}
