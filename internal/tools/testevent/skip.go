package testevent

import "regexp"

var needs = regexp.MustCompile(`(?m)\bneeds ([^\n]*\S)\s*$`)

// Needs returns the feature for want of which a test with that output was
// skipped, or "".
func Needs(output string) string {
	if m := needs.FindStringSubmatch(output); m != nil {
		return m[1]
	}
	return ""
}
