package policy

import "strings"

// rateUnits are decimal, as bandwidth is everywhere, largest first.
var rateUnits = [...]unit{{"Tbit", 1e12}, {"Gbit", 1e9}, {"Mbit", 1e6}, {"Kbit", 1e3}, {"bit", 1}}

// ParseRate reads a bandwidth such as "10Mbit" or "1.5Gbit". The units are bit,
// Kbit, Mbit, Gbit and Tbit a second, each 1000 of the one before, in exactly
// this spelling: tc reads "mbps" as megabytes and "mbit" as megabits, so that
// guessing would be wrong by a factor of eight. The error is a *ValueError.
func ParseRate(s string) (Rate, error) {
	n, err := parseQuantity("rate", s, rateUnits[:], rateHelp)
	return Rate(n), err
}

// String writes the rate as ParseRate reads it.
func (r Rate) String() string { return formatQuantity(uint64(r), rateUnits[:]) }

// MarshalText writes the rate as ParseRate reads it.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is ParseRate.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// rateHelp finds what the author of a wrong unit meant.
func rateHelp(num, unit string) string {
	switch {
	case num == "":
		return "write a number and a unit, as in 10Mbit"
	case unit == "":
		if r, err := ParseRate(num + "bit"); err == nil && r >= 1e5 {
			return "write " + r.String() + " if bits were meant"
		}
		return "add one: " + num + "Kbit, " + num + "Mbit or " + num + "Gbit"
	}
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
	switch rest {
	case "B", "B/s", "Bps", "byte", "bytes", "byte/s", "bytes/s", "Byte", "Bytes":
		if r, err := ParseRate(bits); err == nil && r <= r*8/8 {
			return "rates are in bits: " + (r * 8).String() + " if bytes were meant, else " + bits
		}
	case "bps":
		if unit[0] != strings.ToUpper(unit)[0] { // tc's mbps is megabytes
			if r, err := ParseRate(bits); err == nil && r <= r*8/8 {
				return "write " + bits + " for bits, or " + (r * 8).String() + " if bytes were meant, as tc does"
			}
		}
		return "did you mean " + bits + "?"
	case "", "b", "b/s", "bit", "bits", "bit/s", "bits/s", "Bit", "Bits", "BIT":
		return "did you mean " + bits + "?"
	}
	names := make([]string, 0, 5)
	for _, u := range rateUnits[:] {
		names = append(names, u.name)
	}
	if strings.ContainsAny(unit, "0123456789") {
		return "write the number in plain decimals, as in 1.5Gbit"
	}
	if near := Suggest(unit, names); near != "" {
		return "did you mean " + num + near + "?"
	}
	return "the units are bit, Kbit, Mbit, Gbit and Tbit"
}
