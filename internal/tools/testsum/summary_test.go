package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil/feature"
)

// ev writes events as go test -json does: "action test output".
func ev(pkg string, lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		f := strings.SplitN(l, " ", 3)
		fmt.Fprintf(&b, `{"Action":%q,"Package":%q`, f[0], pkg)
		if len(f) > 1 && f[1] != "" {
			fmt.Fprintf(&b, `,"Test":%q`, f[1])
		}
		if len(f) > 2 {
			fmt.Fprintf(&b, `,"Output":%q`, f[2]+"\n")
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// kernel is what cmd features says of a kernel under test.
const kernel = `{"Action":"features","Features":{"tcx":false,"root":true}}` + "\n"

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		last     string
		says     []string
	}{
		{"passes", kernel + ev("p", "start", "run A", "pass A", "run B", "pass B", "pass"), "2 passed, 0 failed, 0 skipped", nil},
		{
			"subtests count, their parent does not",
			kernel + ev("p", "start", "run A", "run A/x", "pass A/x", "run A/y", "fail A/y", "fail A", "fail"),
			"1 passed, 1 failed, 0 skipped",
			[]string{"FAILED p A/y"},
		},
		{
			"a parent that fails by itself",
			kernel + ev("p", "start", "run A", "run A/x", "pass A/x", "output A after the subtest", "fail A", "fail"),
			"1 passed, 1 failed, 0 skipped",
			[]string{"FAILED p A\n  after the subtest"},
		},
		{
			"a subtest that its parent was failed from",
			kernel + ev("p", "start", "run A", "run A/x", "run A/x/y", "output A/x/y subtest may have called FailNow on a parent test", "fail A/x/y",
				"fail A/x", "output A got 1, want 2", "fail A", "run B", "output B other", "pass B", "fail"),
			"1 passed, 1 failed, 0 skipped",
			[]string{"FAILED p A/x/y\n  subtest may have called FailNow on a parent test\n  got 1, want 2\n\n"},
		},
		{
			"a slash in a subtest's name makes no parent",
			kernel + ev("p", "start", "run A", "run A/x/y", "pass A/x/y", "pass A", "pass"),
			"1 passed, 0 failed, 0 skipped",
			nil,
		},
		{
			"failures are printed in full",
			kernel + ev("p", "start", "run A", "output A got 1", "output A want 2", "fail A", "fail"),
			"0 passed, 1 failed, 0 skipped",
			[]string{"  got 1\n  want 2\n"},
		},
		{
			"a skip names its feature",
			kernel + ev("p", "start", "run A", "output A     a_test.go:3: needs tcx", "skip A", "pass"),
			"0 passed, 0 failed, 1 skipped",
			[]string{"skipped for want of tcx:\n  p A"},
		},
		{
			"a skip for what is there",
			kernel + ev("p", "start", "run A", "output A a_test.go:3: needs root", "skip A", "pass"),
			"0 passed, 1 failed, 0 skipped",
			[]string{`skipped for "root", which is there`},
		},
		{
			"a skip for what nobody knows",
			kernel + ev("p", "start", "run A", "output A a_test.go:3: needs luck", "skip A", "pass"),
			"0 passed, 1 failed, 0 skipped",
			[]string{`probe "luck": unknown feature`},
		},
		{
			"a skip without a reason",
			kernel + ev("p", "start", "run A", "output A a_test.go:3: flaky", "skip A", "pass"),
			"0 passed, 1 failed, 0 skipped",
			[]string{`skipped without saying "needs FEATURE"`},
		},
		{
			"a package that does not build",
			`{"ImportPath":"p [p.test]","Action":"build-output","Output":"x.go:1: boom\n"}` + "\n" +
				`{"Action":"start","Package":"p"}` + "\n" + `{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			"0 passed, 1 failed, 0 skipped",
			[]string{"FAILED p: does not build\n  x.go:1: boom"},
		},
		{
			"a leak after tests that passed",
			kernel + ev("p", "start", "run A", "pass A", "output  leaked by the suite: x", "fail"),
			"1 passed, 1 failed, 0 skipped",
			[]string{"FAILED p: failed outside its tests\n  leaked by the suite: x"},
		},
		{
			"a machine that died",
			kernel + ev("p", "start", "run A") + "Kernel panic - not syncing\n",
			"0 passed, 2 failed, 0 skipped",
			[]string{"FAILED p A: did not end", "FAILED p: ended without a result", "Kernel panic"},
		},
		{
			"benchmarks end without a word",
			kernel + ev("p", "start", "run BenchmarkA", "run BenchmarkA/x", "run BenchmarkB", "fail BenchmarkB", "fail"),
			"1 passed, 1 failed, 0 skipped",
			[]string{"FAILED p BenchmarkB"},
		},
		{"a benchmark that died", kernel + ev("p", "start", "run BenchmarkA"), "0 passed, 2 failed, 0 skipped", []string{"BenchmarkA: did not end"}},
		{"nothing", "", "0 passed, 1 failed, 0 skipped", []string{"no test ran"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(nil, strings.NewReader(tt.in), &out, &out)
			lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
			if got := lines[len(lines)-1]; got != tt.last {
				t.Errorf("last line %q, want %q", got, tt.last)
			}
			for _, want := range tt.says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, &out)
				}
			}
			if green := strings.Contains(tt.last, " 0 failed"); green != (err == nil) || !green && !errors.Is(err, errFailed) {
				t.Errorf("%q ended with %v", tt.last, err)
			}
		})
	}
}

// Without the word of another kernel, this one is asked.
func TestPoliceThisKernel(t *testing.T) {
	root, err := feature.Has("root")
	if err != nil {
		t.Fatal(err)
	}
	in := ev("p", "start", "run A", "output A a_test.go:3: needs root", "skip A", "pass")
	if err := run(nil, strings.NewReader(in), &bytes.Buffer{}, &bytes.Buffer{}); (err != nil) != root {
		t.Errorf("root is %v, and a skip for want of it ends with %v", root, err)
	}
}

func TestLabelAndCounts(t *testing.T) {
	counts := filepath.Join(t.TempDir(), "counts")
	in := kernel + ev("p", "start", "run A", "pass A", "run B", "output B x: needs tcx", "skip B", "pass")
	for range 2 {
		var out bytes.Buffer
		if err := run([]string{"-label", "6.1", "-counts", counts}, strings.NewReader(in), &out, &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != "6.1: 1 passed, 0 failed, 1 skipped (1 needs tcx)" {
			t.Errorf("got %q", got)
		}
	}
	if b, err := os.ReadFile(counts); string(b) != "1 0 1\n1 0 1\n" {
		t.Errorf("counts are %q (%v)", b, err)
	}
}
