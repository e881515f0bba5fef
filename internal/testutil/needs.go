package testutil

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil/feature"
)

// Needs skips the test where one of the features is absent, with the words
// "needs NAME" by which the run polices its skips. The names are those of
// [feature.Names]; an unknown one fails the test. Without root most features
// can not be probed: the test is then skipped for "root".
func Needs(t testing.TB, features ...string) {
	t.Helper()
	for _, name := range features {
		ok, err := feature.Has(name)
		if err != nil {
			if root, _ := feature.Has("root"); !root && !errors.Is(err, feature.ErrUnknown) {
				t.Skipf("needs %s", "root")
			}
			t.Fatal(err)
		}
		if !ok {
			t.Skipf("needs %s", name)
		}
	}
}

// Condition answers [has:NAME] in testscript files, with hyphens for the
// spaces of the name: `[!has:mqprio-qdisc] skip 'needs mqprio qdisc'`.
func Condition(cond string) (bool, error) {
	want, ok := strings.CutPrefix(cond, "has:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	for _, name := range feature.Names() {
		if strings.ReplaceAll(name, " ", "-") == want {
			return feature.Has(name)
		}
	}
	return false, fmt.Errorf("probe %q: %w", want, feature.ErrUnknown)
}
