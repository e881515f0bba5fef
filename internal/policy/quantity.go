package policy

import (
	"math/big"
	"strconv"
	"strings"
)

// unit is one unit of a quantity and what it is worth in the smallest one.
type unit struct {
	name  string
	worth uint64
}

// parseQuantity reads a decimal number with one of the units behind it, exactly:
// what is no whole number of the smallest unit is refused, not rounded. wrong
// makes the help for a unit that is not one of them.
func parseQuantity(what, s string, units []unit, wrong func(num, unit string) string) (uint64, error) {
	num, name := splitQuantity(s)
	if num == "" {
		return 0, &ValueError{what + " " + quote(s) + " is not a number with a unit", wrong("", s)}
	}
	integer, fraction, dot := strings.Cut(num, ".")
	if integer == "" || dot && fraction == "" || strings.Contains(fraction, ".") || len(num) > 40 {
		return 0, &ValueError{what + " " + quote(s) + " has a malformed number", ""}
	}
	if len(integer) > 1 && integer[0] == '0' {
		return 0, leadingZero(what, s)
	}
	for _, u := range units {
		if u.name == name {
			return scale(what, s, integer, strings.TrimRight(fraction, "0"), u.worth)
		}
	}
	if name == "" {
		return 0, &ValueError{what + " " + clip(s) + " has no unit", wrong(num, "")}
	}
	return 0, &ValueError{what + " " + quote(s) + " has an unknown unit", wrong(num, name)}
}

// splitQuantity parts "1.5Gbit" into its number and its unit, as written.
func splitQuantity(s string) (num, unit string) {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
		end++
	}
	return s[:end], s[end:]
}

// scale is integer.fraction times worth.
func scale(what, s, integer, fraction string, worth uint64) (uint64, error) {
	product, _ := new(big.Int).SetString(integer+fraction, 10)
	product.Mul(product, new(big.Int).SetUint64(worth))
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)
	product, rest := product.QuoRem(product, ten, new(big.Int))
	switch {
	case rest.Sign() != 0:
		return 0, &ValueError{what + " " + quote(s) + " is not a whole number of the smallest unit", ""}
	case !product.IsUint64():
		return 0, &ValueError{what + " " + quote(s) + " is out of range", ""}
	}
	return product.Uint64(), nil
}

// formatQuantity writes n in the largest unit, given largest first, that shows
// it exactly with at most three decimals. The last unit is worth 1.
func formatQuantity(n uint64, units []unit) string {
	for _, u := range units {
		whole, rest := n/u.worth, n%u.worth
		if whole == 0 && u.worth > 1 || rest*1000%u.worth != 0 {
			continue
		}
		text := strconv.FormatUint(whole, 10)
		if rest != 0 {
			decimals := strconv.FormatUint(1000+rest*1000/u.worth, 10)[1:]
			text += "." + strings.TrimRight(decimals, "0")
		}
		return text + u.name
	}
	return strconv.FormatUint(n, 10)
}
