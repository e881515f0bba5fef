package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update writes golden files anew: go test ./internal/report -update
var update = flag.Bool("update", false, "write golden files")

// sample is a run of the ssh lab on a 100 Mbit/s line, its samples thinned out.
func sample(t *testing.T) Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "ssh.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// golden compares a text with a committed file.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what is made now (-want +got):\n%s", path, diff)
	}
}
