package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// badPolicies are the NAME.yaml of all archives under testdata.
func badPolicies(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	bad := make(map[string][]byte)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if name, ok := strings.CutSuffix(f.Name, ".yaml"); ok {
				bad[filepath.Base(file)+"/"+name] = f.Data
			}
		}
	}
	return bad
}

func TestDiagnostics(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(archive.Files); i += 2 {
			bad, want := archive.Files[i], &archive.Files[i+1]
			name, _ := strings.CutSuffix(bad.Name, ".yaml")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				p, err := Parse(bad.Name, bad.Data)
				var errs Errors
				if !errors.As(err, &errs) || len(errs) == 0 || p != nil {
					t.Fatalf("Parse gives %v, %v", p, err)
				}
				got := errs.Render(bad.Name, bad.Data, false)
				checkForm(t, errs, got)
				if *update {
					want.Data = []byte(got)
				} else if diff := cmp.Diff(string(want.Data), got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkForm holds what is true of every rendered file.
func checkForm(t *testing.T, errs Errors, text string) {
	t.Helper()
	for _, d := range errs {
		if d.Line == 0 {
			t.Errorf("%q has no place", d.Message)
		}
		if len(d.Related) > 0 && d.Help != "" {
			t.Errorf("%q has a related place and help, which is more than six lines", d.Message)
		}
		for _, leak := range []string{"yaml:", "go-yaml", "!!", "map[", "%!", "strconv", "netip", "nil", "int64", "uint"} {
			if strings.Contains(d.Message+d.Help, leak) {
				t.Errorf("%q, %q leaks %q", d.Message, d.Help, leak)
			}
		}
	}
	if !slices.IsSortedFunc(errs, func(a, b Diagnostic) int {
		return (a.Line-b.Line)*1000000 + a.Column - b.Column
	}) {
		t.Error("not in the order of places")
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len([]rune(line)) > 160 {
			t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
		}
		if strings.TrimRight(line, " \t") != line || strings.Contains(line, "\t") {
			t.Errorf("trailing space or tab in %q", line)
		}
	}
}
