package policy

import (
	"math/big"
	"strconv"
	"strings"
)

// A Size is a number of bytes.
type Size uint64

// sizeUnits are binary, as memory is counted, largest first.
var sizeUnits = [...]struct {
	name  string
	worth Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads a size such as "64KiB" or "1.5MiB", exactly. The units are B, KiB,
// MiB and GiB, each 1024 of the one before, in exactly this spelling: "KB" and "k" are a
// thousand to some and 1024 to others. The error is a *ValueError.
func ParseSize(s string) (Size, error) {
	name := strings.TrimLeft(s, "0123456789.")
	num := strings.TrimSuffix(s, name)
	integer, fraction, dot := strings.Cut(num, ".")
	switch {
	case num == "":
		return 0, &ValueError{"size " + quote(s) + " is not a number with a unit", "write a number and a unit, as in 64KiB"}
	case integer == "" || dot && fraction == "" || strings.Contains(fraction, ".") || len(num) > 40:
		return 0, &ValueError{"size " + quote(s) + " has a malformed number", "write the number as in 1.5MiB"}
	case len(integer) > 1 && integer[0] == '0':
		return 0, leadingZero("size", s)
	}
	for _, u := range sizeUnits {
		if u.name == name {
			return scaleSize(s, num, u.worth)
		}
	}
	if strings.TrimSpace(name) == "" {
		return 0, &ValueError{"size " + clip(num) + " has no unit", "add one: " + clip(num) + "KiB or " + clip(num) + "MiB"}
	}
	return 0, &ValueError{"size " + quote(s) + " has an unknown unit", sizeUnitHelp(num, name)}
}

// scaleSize is num times worth.
func scaleSize(s, num string, worth Size) (Size, error) {
	size, _ := new(big.Rat).SetString(num)
	size.Mul(size, new(big.Rat).SetInt(new(big.Int).SetUint64(uint64(worth))))
	switch {
	case !size.IsInt():
		return 0, &ValueError{"size " + quote(s) + " is not a whole number of bytes", ""}
	case !size.Num().IsUint64():
		return 0, &ValueError{"size " + quote(s) + " is out of range", "at most 17179869183GiB"}
	}
	return Size(size.Num().Uint64()), nil
}

// sizeUnitHelp finds what the author of a wrong unit meant.
func sizeUnitHelp(num, unit string) string {
	const all = "the units are B, KiB, MiB and GiB"
	trimmed := strings.TrimSpace(unit)
	for _, u := range sizeUnits {
		if trimmed == u.name {
			return "write it without the space: " + clip(num) + u.name
		}
		for _, other := range []string{u.name[:1], u.name[:1] + "B", u.name[:1] + "i", u.name} {
			if strings.EqualFold(trimmed, other) {
				return "did you mean " + clip(num) + u.name + "?"
			}
		}
	}
	return all
}

// String writes the size as ParseSize reads it, in the largest unit that shows it as a
// whole number.
func (s Size) String() string {
	unit := sizeUnits[len(sizeUnits)-1]
	for _, u := range sizeUnits {
		if s != 0 && s%u.worth == 0 {
			unit = u
			break
		}
	}
	return strconv.FormatUint(uint64(s/unit.worth), 10) + unit.name
}

// MarshalText writes the size as ParseSize reads it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSize.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}
