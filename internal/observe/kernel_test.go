package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseTimes(t *testing.T) {
	got, err := parseTimes("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 100 50 4 5 70 8 9\ncpu11 0 0 1 0 0 0 0 0 0 0\nintr 1 2 3 4 5 6 7 8 9\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]spent{0: {150 * time.Millisecond, 50 * time.Millisecond}, 11: {10 * time.Millisecond, 0}}, got, cmp.AllowUnexported(spent{})); diff != "" {
		t.Error(diff)
	}
	if _, err := parseTimes("cpu0 1 2 x 4 5 6 7 8\n"); err == nil {
		t.Error("x is a number")
	}
}

func TestParseSqueezes(t *testing.T) {
	for name, tc := range map[string]struct {
		stat string
		want map[int]uint64
	}{
		"with its CPU":        {"0a 00 1f 0 0 0 0 0 0 0 0 0 03 0 0\n", map[int]uint64{3: 31}},
		"a line a CPU before": {"0a 00 01 0 0 0 0 0 0 0 0\n0a 00 02 0 0 0 0 0 0 0 0\n", map[int]uint64{0: 1, 1: 2}},
	} {
		got, err := parseSqueezes(tc.stat)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := parseSqueezes("0a 00 zz\n"); err == nil {
		t.Error("zz is a number")
	}
}

func TestParseRuns(t *testing.T) {
	got, err := parseRuns("          CPU0       CPU2\n      HI:  1 2\n  NET_TX:   3 4\n  NET_RX:  5  6\n")
	if diff := cmp.Diff(map[int][2]uint64{0: {5, 3}, 2: {6, 4}}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, wrong := range []string{"A B\n", "CPU0\nNET_RX: x\n"} {
		if _, err := parseRuns(wrong); err == nil {
			t.Errorf("%q is a table", wrong)
		}
	}
}
