package policy

import (
	"math/big"
	"strings"
)

// percentOf reads a percentage such as "20%" or "12.5%" of a whole, rounded down to
// bits a second; ok is false for what is no percentage. The error is a *ValueError.
func percentOf(s string, whole Rate) (part Rate, ok bool, err error) {
	num, ok := strings.CutSuffix(s, "%")
	if !ok {
		return 0, false, nil
	}
	malformed := &ValueError{"percentage " + quote(s) + " has a malformed number", "write the number as in 12.5%"}
	integer, fraction, dot := strings.Cut(num, ".")
	if integer == "" || dot && fraction == "" || len(num) > 40 || strings.Trim(integer+fraction, "0123456789") != "" {
		return 0, true, malformed
	}
	if len(integer) > 1 && integer[0] == '0' {
		return 0, true, leadingZero("percentage", s)
	}
	percent, _ := new(big.Rat).SetString(num)
	if percent.Sign() == 0 || percent.Cmp(big.NewRat(100, 1)) > 0 {
		return 0, true, &ValueError{"percentage " + quote(s) + " is not a part of the whole", "above 0%, and at most 100%"}
	}
	percent.Mul(percent, new(big.Rat).SetFrac(new(big.Int).SetUint64(uint64(whole)), big.NewInt(100)))
	return Rate(new(big.Int).Quo(percent.Num(), percent.Denom()).Uint64()), true, nil
}

// amount reads a bandwidth: a rate, or a percentage of the rate of a link. The error
// is a *ValueError.
func (m *meaning) amount(s string, link *Link) (Rate, error) {
	switch {
	case !strings.HasSuffix(s, "%"):
		return ParseRate(s)
	case link == nil:
		return 0, &ValueError{clip(s) + " of no link: a percentage is of the rate of one", "write it as a rate, as in 50Mbit"}
	case link.Rate < MinRate:
		return 0, &ValueError{clip(s) + " of the rate of link " + quote(link.Name) + ", which has none here",
			"give it one, as in links: {" + quoteless(link.Name) + ": {rate: 1Gbit}}"}
	}
	rate, _, err := percentOf(s, link.Rate)
	return rate, err
}
