package policy

import "strconv"

// dscps are the code points that have a name, by value: class selectors (RFC
// 2474), assured forwarding (RFC 2597), expedited forwarding (RFC 3246), voice
// admit (RFC 5865) and lower effort (RFC 8622).
var dscps = [...]struct {
	name  string
	value int8
}{
	{"cs0", 0}, {"le", 1}, {"cs1", 8}, {"af11", 10}, {"af12", 12}, {"af13", 14},
	{"cs2", 16}, {"af21", 18}, {"af22", 20}, {"af23", 22}, {"cs3", 24}, {"af31", 26},
	{"af32", 28}, {"af33", 30}, {"cs4", 32}, {"af41", 34}, {"af42", 36}, {"af43", 38},
	{"cs5", 40}, {"va", 44}, {"ef", 46}, {"cs6", 48}, {"cs7", 56},
}

// ParseDSCP reads a DSCP, by name ("ef") or number from 0 to 63. The error is a
// *ValueError.
func ParseDSCP(s string) (int8, error) {
	if isNumber(s) {
		n, err := number("dscp", s, 0, 63)
		if err != nil && len(s) <= 3 {
			if tos, _ := strconv.Atoi(s); tos > 63 && tos <= 255 && tos%4 == 0 {
				return -1, &ValueError{"dscp " + s + " is out of range", "0 to 63; as a TOS byte it would be dscp " + strconv.Itoa(tos/4)}
			}
		}
		return int8(n), err
	}
	names := make([]string, len(dscps))
	for i, d := range dscps {
		if d.name == s {
			return d.value, nil
		}
		names[i] = d.name
	}
	help := DidYouMean(s, names, "cs0 to cs7, af11 to af43, ef, va, le, or a number from 0 to 63")
	return -1, &ValueError{"dscp " + quote(s) + " is not known", help}
}

// DSCPName returns the name of a DSCP, or its number where it has none.
func DSCPName(value int8) string {
	for _, d := range dscps {
		if d.value == value {
			return d.name
		}
	}
	return strconv.Itoa(int(value))
}
