package testutil

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil/feature"
)

// recorder stands for the test that Needs is called in.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()                       {}
func (r *recorder) Skipf(format string, a ...any) { r.skipped = fmt.Sprintf(format, a...); panic(r) }
func (r *recorder) Fatal(a ...any)                { r.failed = fmt.Sprint(a...); panic(r) }

func needs(features ...string) (r *recorder) {
	r = &recorder{}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
	}()
	Needs(r, features...)
	return r
}

func TestNeeds(t *testing.T) {
	if r := needs("luck"); !strings.Contains(r.failed, "unknown feature") {
		t.Errorf("an unknown name: %q %q, want a failure", r.skipped, r.failed)
	}
	var present, absent string
	for _, name := range feature.Names() {
		switch ok, err := feature.Has(name); {
		case err != nil:
		case ok:
			present = name
		default:
			absent = name
		}
	}
	if r := needs(present); r.skipped+r.failed != "" {
		t.Errorf("%s is there, got %q %q", present, r.skipped, r.failed)
	}
	if r := needs(present, absent); r.skipped != "needs "+absent {
		t.Errorf("skipped with %q, want %q", r.skipped, "needs "+absent)
	}
}

func TestCondition(t *testing.T) {
	want, err := feature.Has("veth link")
	if err != nil {
		t.Skipf("needs %s", "root")
	}
	if got, err := Condition("has:veth-link"); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"has:luck", "linux"} {
		if _, err := Condition(bad); err == nil {
			t.Errorf("%s: want an error", bad)
		}
	}
}
