package testutil

import (
	"path/filepath"
	"testing"
)

func TestSuites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "suites")
	first, end := startSuite(path)
	if !first() {
		t.Error("the only suite is not alone")
	}
	second, endSecond := startSuite(path)
	if first() || second() {
		t.Errorf("two suites at a time: alone are %v and %v", first(), second())
	}
	for _, end := range []func() error{end, endSecond} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	third, end := startSuite(path)
	defer end()
	if !third() {
		t.Error("a suite after all others is not alone")
	}
}
