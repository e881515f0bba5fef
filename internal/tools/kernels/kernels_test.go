package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/testutil"
)

// proofOf is the events of a test that proves a promise on a rung and ends so.
func proofOf(test string, p testutil.Promise, rung, action, output string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`{"Action":"run","Package":"p","Test":%q}`, test)
	line(`{"Action":"attr","Package":"p","Test":%q,"Key":"promise","Value":%q}`, test, p)
	if rung != "" {
		line(`{"Action":"attr","Package":"p","Test":%q,"Key":"rung","Value":%q}`, test, rung)
	}
	if output != "" {
		line(`{"Action":"output","Package":"p","Test":%q,"Output":%q}`, test, output+"\n")
	}
	if action != "" {
		line(`{"Action":%q,"Package":"p","Test":%q}`, action, test)
	}
	return b.String()
}

func TestCells(t *testing.T) {
	order := func(test, rung, action, output string) string {
		return proofOf(test, testutil.Order, rung, action, output)
	}
	for _, tt := range []struct {
		name, events string
		want         Cell
	}{
		{"the best rung", order("A", "prio", "pass", "") + order("B", "htb", "pass", ""), Cell{Proven, []string{"prio", "htb"}, nil}},
		{
			"a lower one, and what is lacking",
			`{"Action":"features","Features":{"prio qdisc":false,"ets qdisc":true}}` + "\n" + order("B", "htb", "pass", ""),
			Cell{Lower, []string{"htb"}, []string{"no prio qdisc", "ets qdisc is there, and was not shown"}},
		},
		{
			"not possible",
			order("A", "prio", "skip", "needs prio qdisc") + order("B", "htb", "skip", "needs htb qdisc") + order("C", "", "skip", "needs htb qdisc"),
			Cell{Impossible, nil, []string{"no htb qdisc", "no prio qdisc"}},
		},
		{"one of several failed", order("A", "prio", "pass", "") + order("B", "htb", "fail", ""), Cell{Broken, nil, []string{"B"}}},
		{"failed before it knew its rung", order("A", "", "fail", ""), Cell{Broken, nil, []string{"A"}}},
		{"did not end", order("A", "prio", "", ""), Cell{Broken, nil, []string{"A"}}},
		{"nobody looked", "", Cell{State: Missing}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := readRun("6.1", strings.NewReader(tt.events))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, r.Cells[testutil.Order]); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, events := range map[string]string{
		"no such promise":  proofOf("A", "luck", "", "pass", ""),
		"no such rung":     order("A", "luck", "pass", ""),
		"no rung":          order("A", "", "pass", ""),
		"not a rung of it": order("A", "mqprio", "pass", ""),
	} {
		if _, err := readRun("6.1", strings.NewReader(events)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// full is a run in which everything is proven on its best rung.
func full(t *testing.T, except ...string) string {
	t.Helper()
	all := strings.Join(except, "")
	for _, p := range promises {
		rung := ""
		if len(p.ladder) > 0 {
			rung = p.ladder[0]
		}
		if !strings.Contains(all, fmt.Sprintf("%q", p.id)) {
			all += proofOf("Of "+string(p.id), p.id, rung, "pass", "")
		}
	}
	return all + `{"Action":"features","Features":{},"Kernel":"6.1.0-1-cloud"}` + "\n"
}

// TestOneRedCell: of two kernels with all promises, one with a broken one, just
// its cell is red, and a page of before tells on it.
func TestOneRedCell(t *testing.T) {
	dir := t.TempDir()
	put := func(name, events string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(events), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("6.1", full(t))
	put("5.10", full(t))
	put("host", full(t))
	data, before, after := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "before.md"), filepath.Join(t.TempDir(), "after.md")
	var errs bytes.Buffer
	if err := run([]string{"-data", data, "-page", before, dir}, &errs); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	put("5.10", full(t, proofOf("TestX", testutil.NetPrio, "", "fail", "")))
	if err := run([]string{"-against", data, "-page", after, dir}, &errs); err != errUnproven {
		t.Errorf("a broken promise: %v", err)
	}
	for _, want := range []string{`5.10: "Priorities without BPF, by the v1 net_prio controller" is broken: [TestX]`, "the page says proven"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%q is not in %s", want, &errs)
		}
	}
	cells := func(path string) (all []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "|") {
				all = append(all, strings.Split(line, "|")...)
			}
		}
		return all
	}
	was, is := cells(before), cells(after)
	if len(was) != len(is) {
		t.Fatalf("%d and %d cells", len(was), len(is))
	}
	var red []string
	for i := range is {
		if is[i] != was[i] {
			red = append(red, is[i])
		}
	}
	if diff := cmp.Diff([]string{" **BROKEN** (1) "}, red); diff != "" {
		t.Error(diff)
	}
}

func TestOrderOfColumns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"host", "6.12", "6.1 hybrid", "6.1", "5.10"} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(full(t)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := readRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range runs {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"5.10", "6.1", "6.1 hybrid", "6.12", "host"}, names); diff != "" {
		t.Error(diff)
	}
	if got := page(runs); strings.Count(got, "| 6.1 hybrid |") != 2 || strings.Contains(got, "**") {
		t.Error(got)
	}
}
