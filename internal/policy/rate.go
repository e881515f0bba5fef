package policy

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// rateUnits are decimal, as bandwidth is everywhere, largest first.
var rateUnits = [...]struct {
	name  string
	worth uint64
}{{"Tbit", 1e12}, {"Gbit", 1e9}, {"Mbit", 1e6}, {"Kbit", 1e3}, {"bit", 1}}

// MinRate is the smallest rate that a link can be held to: a byte a millisecond.
// Below it the kernel's own granularity (a byte a second) stops being negligible.
const MinRate Rate = 8000

// ParseRate reads a bandwidth such as "10Mbit" or "1.5Gbit", exactly: what is no
// whole number of bits a second is refused, not rounded. The units are bit,
// Kbit, Mbit, Gbit and Tbit a second, each 1000 of the one before, in exactly
// this spelling: tc reads "mbps" as megabytes and "mbit" as megabits, so that
// guessing would be wrong by a factor of eight. The error is a *ValueError.
func ParseRate(s string) (Rate, error) {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
		end++
	}
	num, name := s[:end], s[end:]
	if num == "" {
		return 0, &ValueError{"rate " + quote(s) + " is not a number with a unit", "write a number and a unit, as in 10Mbit"}
	}
	integer, fraction, dot := strings.Cut(num, ".")
	if integer == "" || dot && fraction == "" || strings.Contains(fraction, ".") || len(num) > 40 {
		return 0, &ValueError{"rate " + quote(s) + " has a malformed number", "write the number as in 1.5Gbit"}
	}
	if len(integer) > 1 && integer[0] == '0' {
		return 0, leadingZero("rate", s)
	}
	for _, u := range rateUnits {
		if u.name == name {
			return scaleRate(s, integer, strings.TrimRight(fraction, "0"), u.worth)
		}
	}
	if strings.TrimSpace(name) == "" {
		return 0, &ValueError{"rate " + clip(num) + " has no unit", noUnitHelp(num)}
	}
	return 0, &ValueError{"rate " + quote(s) + " has an unknown unit", unitHelp(num, name)}
}

// scaleRate is integer.fraction times worth.
func scaleRate(s, integer, fraction string, worth uint64) (Rate, error) {
	product, _ := new(big.Int).SetString(integer+fraction, 10)
	product.Mul(product, new(big.Int).SetUint64(worth))
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)
	product, rest := product.QuoRem(product, ten, new(big.Int))
	switch {
	case rest.Sign() != 0:
		return 0, &ValueError{"rate " + quote(s) + " is not a whole number of bits a second", ""}
	case !product.IsUint64():
		return 0, &ValueError{"rate " + quote(s) + " is out of range", "at most 18446744Tbit"}
	}
	return Rate(product.Uint64()), nil
}

// String writes the rate as ParseRate reads it, in the largest unit that shows
// it exactly with at most three decimals.
func (r Rate) String() string {
	n := uint64(r)
	for _, u := range rateUnits[:len(rateUnits)-1] {
		whole, rest := n/u.worth, n%u.worth
		if whole == 0 || rest*1000%u.worth != 0 {
			continue
		}
		text := strconv.FormatUint(whole, 10)
		if rest != 0 {
			decimals := strconv.FormatUint(1000+rest*1000/u.worth, 10)[1:]
			text += "." + strings.TrimRight(decimals, "0")
		}
		return text + u.name
	}
	return strconv.FormatUint(n, 10) + "bit"
}

// MarshalText writes the rate as ParseRate reads it.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is ParseRate.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// noUnitHelp finds what the author of a bare number meant.
func noUnitHelp(num string) string {
	if r, err := ParseRate(num + "bit"); err == nil && r >= 1e5 {
		return "write " + r.String() + " if bits were meant"
	}
	return "add one: " + num + "Kbit, " + num + "Mbit or " + num + "Gbit"
}

// unitHelp finds what the author of a wrong unit meant, which is more than
// spaces.
func unitHelp(num, unit string) string {
	if trimmed := strings.TrimSpace(unit); trimmed != unit {
		if _, err := ParseRate(num + trimmed); err == nil {
			return "write it without the space: " + num + trimmed
		}
		unit = trimmed
	}
	prefix, rest := "", unit
	if i := strings.IndexByte("kmgtKMGT", unit[0]); i >= 0 {
		prefix, rest = string("KMGTKMGT"[i]), unit[1:]
	}
	bits := num + prefix + "bit"
	if strings.HasPrefix(rest, "i") && len(rest) <= 5 {
		return "rates count in thousands: " + bits
	}
	bytes, counts := timesEight(bits)
	switch rest {
	case "B", "B/s", "Bps", "byte", "bytes", "byte/s", "bytes/s", "Byte", "Bytes":
		if counts {
			return "rates are in bits: " + bytes.String() + " if bytes were meant, else " + bits
		}
	case "bps":
		if counts && unit == strings.ToLower(unit) { // tc's mbps is megabytes
			return "write " + bits + " for bits, or " + bytes.String() + " if bytes were meant, as tc does"
		}
		return "did you mean " + bits + "?"
	case "", "b", "b/s", "bit", "bits", "bit/s", "bits/s", "Bit", "Bits", "BIT":
		return "did you mean " + bits + "?"
	}
	if strings.ContainsAny(unit, "0123456789") {
		return "write the number in plain decimals, as in 1.5Gbit"
	}
	names := make([]string, 0, len(rateUnits))
	for _, u := range rateUnits {
		names = append(names, u.name)
	}
	if near := Suggest(unit, names); near != "" {
		return "did you mean " + num + near + "?"
	}
	return "the units are bit, Kbit, Mbit, Gbit and Tbit"
}

// timesEight is a rate of bytes where the text says bits; ok is false where that
// is no rate.
func timesEight(bits string) (bytes Rate, ok bool) {
	r, err := ParseRate(bits)
	if err != nil || r > math.MaxUint64/8 {
		return 0, false
	}
	return r * 8, true
}
