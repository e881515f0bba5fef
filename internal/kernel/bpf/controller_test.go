package bpf

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestControllerIndex(t *testing.T) {
	testutil.Needs(t, "BTF")
	if i, err := ControllerIndex(""); i != -1 || err != nil {
		t.Errorf("no controller: %d, %v", i, err)
	}
	if _, err := ControllerIndex("none-such"); err == nil || !strings.Contains(err.Error(), `"none-such"`) {
		t.Errorf("unknown controller: %v", err)
	}
	seen := map[int]string{}
	for _, name := range []string{"memory", "blkio", "cpu"} {
		i, err := ControllerIndex(name)
		if err != nil {
			t.Fatal(err)
		}
		if i < 0 || seen[i] != "" {
			t.Errorf("%s has index %d, like %q", name, i, seen[i])
		}
		seen[i] = name
	}
}
