package cost

import (
	"math"
	"testing"
	"time"
)

// measuredAs is a second in which interrupts took a time, for packets of 1,000 bytes.
func measuredAs(stolen time.Duration, packets uint64) Measured {
	m := Measured{Seconds: 1, Packets: packets, Bytes: 1000 * packets}
	m.Times[RX] = stolen
	return m
}

func TestCompare(t *testing.T) {
	ms := time.Millisecond
	for name, tc := range map[string]struct {
		a, b   []time.Duration
		ratio  float64 // 0: none
		differ bool
	}{
		"b takes less":                    {[]time.Duration{100 * ms, 102 * ms, 98 * ms, 100 * ms}, []time.Duration{70 * ms, 71 * ms, 69 * ms, 70 * ms}, 0.7, true},
		"they are alike":                  {[]time.Duration{100 * ms, 102 * ms, 98 * ms, 100 * ms}, []time.Duration{101 * ms, 100 * ms, 99 * ms, 100 * ms}, 1, false},
		"they differ less than they vary": {[]time.Duration{100 * ms, 50 * ms, 150 * ms, 90 * ms}, []time.Duration{60 * ms, 70 * ms, 65 * ms, 80 * ms}, 0.83, false},
		"two pairs say nothing":           {[]time.Duration{100 * ms, 100 * ms}, []time.Duration{50 * ms, 50 * ms}, 0, false},
		"a takes nothing":                 {[]time.Duration{0, 0, 0}, []time.Duration{ms, ms, ms}, 0, false},
	} {
		var a, b []Measured
		for i := range tc.a {
			a, b = append(a, measuredAs(tc.a[i], 1000)), append(b, measuredAs(tc.b[i], 1000))
		}
		c := Compare(a, b)[0]
		if c.Name != "stolen_percent" || len(c.A) != len(a) || c.Differ != tc.differ {
			t.Errorf("%s: %+v", name, c)
		}
		if (c.Ratio == nil) != (tc.ratio == 0) || c.Ratio != nil && math.Abs(*c.Ratio-tc.ratio) > 0.1 {
			t.Errorf("%s: ratio %v, want %g", name, c.Ratio, tc.ratio)
		}
	}
}

// What can not be divided is not there.
func TestCompareWithoutPackets(t *testing.T) {
	nothing := []Measured{measuredAs(0, 0), measuredAs(0, 0), measuredAs(0, 0)}
	for _, c := range Compare(nothing, nothing) {
		perPacket := c.Name == "ns_per_packet" || c.Name == "seconds_per_gbit"
		if perPacket != (len(c.A) == 0) || perPacket != (len(c.B) == 0) {
			t.Errorf("%s: %v and %v", c.Name, c.A, c.B)
		}
	}
}

func TestMeasure(t *testing.T) {
	r := &Reading{At: 2 * time.Second, Rows: []Row{row(0, 1, "a", 1, RX, 10, 5), row(1, 2, "b", 1, Send, 20, 0)}}
	r.Rows[0].Bytes = 500
	m := Measure(r)
	if m.Seconds != 2 || m.Packets != 5 || m.Bytes != 500 || m.Times.All() != 30*time.Millisecond {
		t.Errorf("%+v", m)
	}
}
