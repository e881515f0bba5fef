package lab

import (
	"strings"
	"testing"
)

func TestParseCPUTimes(t *testing.T) {
	idle, total, err := parseCPUTimes("cpu  10 1 20 300 40 5 6 7 8 9\ncpu0 1 1 1 1\n")
	if err != nil || idle != 340 || total != 389 {
		t.Errorf("idle %d of %d, %v; want 340 of 389", idle, total, err)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6", "cpu 1 2 x 4 5 6", "cpu 1 2"} {
		if _, _, err := parseCPUTimes(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, total, err := cpuTimes(); err != nil || total == 0 {
		t.Errorf("this host: %d, %v", total, err)
	}
}

func TestBusyShare(t *testing.T) {
	if got := busyShare(75, 100); got != 0.25 {
		t.Errorf("%g", got)
	}
	if got := busyShare(0, 0); got != 0 {
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
