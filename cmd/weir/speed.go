package main

import (
	"fmt"
	"math"
)

// bits renders bits a second in three digits that count: 0 bit/s, 12.3 Mbit/s.
func bits(b float64) string {
	value, unit := b, "bit/s"
	for _, u := range []string{"Kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"} {
		if math.Abs(value) < 999.5 {
			break
		}
		value, unit = value/1000, u
	}
	digits := 2
	switch size := math.Abs(value); {
	case unit == "bit/s" || size >= 99.95:
		digits = 0
	case size >= 9.995:
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, zero(value), unit)
}

// perSecond renders how many there are in a second: 0, 0.5, 1,204.
func perSecond(n float64) string {
	switch size := math.Abs(n); {
	case size >= 9.95 && n < 0:
		return "-" + grouped(uint64(math.Round(size)))
	case size >= 9.95:
		return grouped(uint64(math.Round(n)))
	case size < 0.05:
		return "0"
	}
	return fmt.Sprintf("%.1f", n)
}

// zero is a value without the sign of one that is next to nothing.
func zero(v float64) float64 {
	if math.Abs(v) < 0.5 {
		return math.Abs(v)
	}
	return v
}
