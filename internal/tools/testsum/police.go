package main

import (
	"errors"
	"fmt"
	"regexp"
)

var needs = regexp.MustCompile(`(?m)\bneeds ([^\n]*\S)\s*$`)

// police returns the feature that a skipped test named in its output. A skip
// that names none, or one that is there, is an error: the test should have run.
func police(output string, has func(string) (bool, error)) (string, error) {
	m := needs.FindStringSubmatch(output)
	if m == nil {
		return "", errors.New(`skipped without saying "needs FEATURE"`)
	}
	ok, err := has(m[1])
	if err != nil {
		return "", fmt.Errorf("skipped for %q: %w", m[1], err)
	}
	if ok {
		return "", fmt.Errorf("skipped for %q, which is there", m[1])
	}
	return m[1], nil
}
