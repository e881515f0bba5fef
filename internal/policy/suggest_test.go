package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSuggest(t *testing.T) {
	keys := []string{"match", "priority", "via", "port", "protocol", "eth0", "eth1", "é"}
	for word, want := range map[string]string{
		"mtach": "match", "prio": "priority", "prot": "protocol", "PORT": "port", "pors": "port", "vai": "via",
		"vrf": "", "eth2": "eth0", "": "", "xyz": "", "egress": "", "matchmatchmatch": "", "p": "",
	} {
		if got := Suggest(word, keys); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Suggest("x", nil); got != "" {
		t.Errorf("out of nothing: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "axc", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if distance(a, b) != distance(b, a) || (distance(a, b) == 0) != (a == b) || distance(a, b) > max(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d, back %d", a, b, distance(a, b), distance(b, a))
		}
	})
}
