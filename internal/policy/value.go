package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A ValueError says what is wrong with one value. The parsers of single values
// (ParseRate, ParseCgroup, …) return it, so that a flag of the command line and
// a line of a policy are refused in the same words.
type ValueError struct {
	Message string // the whole finding, with the value in it
	Help    string // how to write it right; "" if there is nothing to say
}

// Error returns the message, with the help behind it if there is one.
func (e *ValueError) Error() string {
	if e.Help == "" {
		return e.Message
	}
	return e.Message + " (" + e.Help + ")"
}

// quote shows text of the user: on one line, in quotes, and never long.
func quote(s string) string { return strconv.Quote(cut(s, 48)) }

// quoteless is the inside of quote.
func quoteless(s string) string {
	quoted := quote(s)
	return quoted[1 : len(quoted)-1]
}

// clip bounds a harmless text, such as digits, in length.
func clip(s string) string { return cut(s, 24) }

// cut shows the first characters of a text that has more than most.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// number reads a decimal number from low to high. Signs, fractions, exponents,
// digits in groups and leading zeros are refused: YAML 1.1 reads 010 as 8.
func number(what, s string, low, high uint64) (uint64, error) {
	limits := strconv.FormatUint(low, 10) + " to " + strconv.FormatUint(high, 10)
	digits, _ := strings.CutPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, &ValueError{what + " " + quote(s) + " is not a decimal number", limits}
	}
	if len(s) > 1 && s[0] == '0' {
		return 0, leadingZero(what, s)
	}
	n, err := strconv.ParseUint(s, 10, 64) // refuses a sign
	if err != nil || n < low || n > high {
		return 0, &ValueError{what + " " + clip(s) + " is out of range", limits}
	}
	return n, nil
}

// leadingZero is the finding for 010, which some read as eight and some as ten.
func leadingZero(what, s string) *ValueError {
	plain := strings.TrimLeft(s, "0")
	if plain == "" || plain[0] < '0' || plain[0] > '9' {
		plain = "0" + plain
	}
	return &ValueError{
		what + " " + clip(s) + " has a leading zero, which some read as octal",
		"write " + clip(plain),
	}
}

// sortedKeys are a map's keys in order, so that no output depends on the map's.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
