package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/cost"
)

func TestComparison(t *testing.T) {
	var a, b []cost.Measured
	for i := range 6 {
		m := cost.Measured{Seconds: 1, Packets: 1000, Bytes: 1e6}
		m.Times[cost.RX] = 100*time.Millisecond + time.Duration(i)*time.Millisecond
		a = append(a, m)
		m.Times[cost.RX] = 69*time.Millisecond + time.Duration(i%3)*time.Millisecond
		b = append(b, m)
	}
	v := costView{width: 100}
	text := strings.Join(strings.Fields(v.comparison(&cost.Comparison{Pairs: 6, Measures: cost.Compare(a, b), Warnings: []string{"other work"}})), " ")
	for _, want := range []string{
		"B steals 31.7 % ± 1.9 less, over 6 pairs", "taken by interrupts 10.2 % 7 % 31.7 % ± 1.9 less 6", "packets/s 1,000 1,000 ~ 6", "warning: other work",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
	v = costView{width: 100}
	if text := v.comparison(&cost.Comparison{Pairs: 6, Measures: cost.Compare(a, a)}); !strings.HasPrefix(text, "no difference in what they steal could be shown, over 6 pairs\n") {
		t.Errorf("alike: %s", text)
	}
}
