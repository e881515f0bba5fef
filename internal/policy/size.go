package policy

import "strings"

// sizeUnits are binary, as memory is, largest first.
var sizeUnits = [...]unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads a number of bytes such as "64KiB" or "1.5MiB". The units are
// B, KiB, MiB, GiB and TiB, each 1024 of the one before. KB and the like are
// refused, because half of their readers take them for 1000 and half for 1024.
// The error is a *ValueError.
func ParseSize(s string) (Size, error) {
	n, err := parseQuantity("size", s, sizeUnits[:], sizeHelp)
	return Size(n), err
}

// String writes the size as ParseSize reads it.
func (s Size) String() string { return formatQuantity(uint64(s), sizeUnits[:]) }

// MarshalText writes the size as ParseSize reads it.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSize.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}

// sizeHelp finds what the author of a wrong unit meant.
func sizeHelp(num, unit string) string {
	switch {
	case num == "":
		return "write a number and a unit, as in 64KiB"
	case unit == "":
		return "add one: " + num + "B, " + num + "KiB or " + num + "MiB"
	}
	unit = strings.TrimSpace(unit)
	if unit != "" {
		rest := strings.ToLower(unit[1:])
		if i := strings.IndexByte("KMGT", strings.ToUpper(unit)[0]); i >= 0 && (rest == "" || rest == "b" || rest == "i" || rest == "ib") {
			return "did you mean " + num + string("KMGT"[i]) + "iB, of 1024 each?"
		}
		switch strings.ToLower(unit) {
		case "b", "byte", "bytes":
			return "did you mean " + num + "B?"
		}
		if strings.Contains(strings.ToLower(unit), "bit") {
			return "sizes are in bytes: B, KiB, MiB, GiB or TiB"
		}
	}
	return "the units are B, KiB, MiB, GiB and TiB"
}
