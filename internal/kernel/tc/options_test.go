package tc

import (
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestReadAnything: whatever bytes a kernel gives, they are an error or a queue
// that can be told in words, and never more than there is.
func TestReadAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := dumped(mustBuild(t, rapid.SampledFrom(queueCases()).Draw(t, "case").queue))
		i := rapid.IntRange(0, len(whole)-1).Draw(t, "entry")
		b := whole[i].options
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			b = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		case 1:
			b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		case 2:
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
		}
		whole[i].options = b
		if q, err := whole.recognise(); err == nil {
			_, _ = whole.counters(q)
			if want, err := build(q, whole.txQueues()); err == nil {
				_, _ = drift(whole, nil, want)
				_, _ = steps(1, whole, nil, want)
			}
		}
		_, _ = snapshot(whole)
		_, _ = parseEntries(1, unix.RTM_NEWQDISC, [][]byte{b})
		parseStats(b)
	})
}
