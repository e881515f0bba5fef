package policy

import (
	"strings"
	"testing"
)

func TestCheckWorkloadName(t *testing.T) {
	for _, good := range []string{"a", "0", "a.b_c-d", strings.Repeat("a", 63)} {
		if err := checkWorkloadName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "A", "-a", ".a", "_a", "a b", "a/b", "é", strings.Repeat("a", 64), "a\n"} {
		if checkWorkloadName(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
