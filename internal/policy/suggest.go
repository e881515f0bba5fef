package policy

import "strings"

// Suggest returns the candidate that the author of word most likely meant, or
// "" if none is near. Case does not count. A beginning of at least three
// letters that only one candidate has is near; else one wrong letter in three
// is, and of candidates equally near the first one wins.
func Suggest(word string, candidates []string) string {
	const longest = 64 // nothing longer is a slip of the fingers
	if word == "" || len(word) > longest {
		return ""
	}
	word = strings.ToLower(word)
	begins, beginning := 0, ""
	best, bestDistance := "", (len(word)+1)/3+1
	for _, candidate := range candidates {
		folded := strings.ToLower(candidate)
		switch {
		case folded == word:
			return candidate
		case len(folded) > longest:
			continue
		case len(word) >= 3 && strings.HasPrefix(folded, word):
			begins, beginning = begins+1, candidate
		}
		if d := distance(word, folded); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	if begins == 1 {
		return beginning
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// DidYouMean is the help for a wrong word: the near candidate, else what the
// caller has to say.
func DidYouMean(word string, candidates []string, otherwise string) string {
	if near := Suggest(word, candidates); near != "" {
		return "did you mean " + quote(near) + "?"
	}
	return otherwise
}

// possible names all candidates, if they are few enough to read.
func possible(candidates []string) string {
	if len(candidates) == 0 || len(candidates) > 12 {
		return ""
	}
	return "possible here: " + strings.Join(candidates, ", ")
}
