package lab

import (
	"strings"
	"testing"
)

func TestParseCPUTimes(t *testing.T) {
	got, err := parseCPUTimes("cpu  10 1 20 300 40 5 6 7 8 9\ncpu0 1 1 1 1\n")
	if want := (cpuTimes{340 * tick, 6 * tick, 7 * tick, 389 * tick}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7", "cpu 1 2 x 4 5 6 7", "cpu 1 2"} {
		if _, err := parseCPUTimes(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if c, err := readCPUTimes(); err != nil || c.total == 0 {
		t.Errorf("this host: %+v, %v", c, err)
	}
}

func TestBusy(t *testing.T) {
	before := cpuTimes{idle: 5 * tick, total: 100 * tick}
	if got := (cpuTimes{idle: 80 * tick, total: 200 * tick}).since(before).busy(); got != 0.25 {
		t.Errorf("%g", got)
	}
	if got := (cpuTimes{}).busy(); got != 0 {
		t.Errorf("of no time %g", got)
	}
}

func TestLookBack(t *testing.T) {
	for want, values := range map[string][]float64{
		"": {1.4, 1.41, 1.42},
		"the copy alone took from 1.4 to 1.5 s: other work": {1.4, 1.5, 1.4},
	} {
		s := &session{samples: map[string]map[string]*samples{}}
		for _, v := range values {
			s.measured("alone", "copy_seconds", "s", v)
		}
		s.lookBack("alone", "copy_seconds", "the copy alone took")
		if got := strings.Join(s.result.Warnings, "; "); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("of %v: %q, want %q", values, got, want)
		}
	}
}
