package main

import "testing"

// Advice names the file, or a place for one where there is none to name.
func TestFileWord(t *testing.T) {
	for file, want := range map[string]string{"policy.yaml": "policy.yaml", "my policy.yaml": "'my policy.yaml'", "-": "FILE"} {
		if got := fileWord(nameOf(file)); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}
