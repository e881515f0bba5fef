package tc

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSpread: every queue belongs to one class, every class has one at least,
// and no class has more than the one before it.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(1, 16).Draw(t, "classes")
		queues := rapid.IntRange(classes, 256).Draw(t, "queues")
		next := 0
		for c, r := range spread(queues, classes) {
			if c >= classes {
				if r != (queueRange{}) {
					t.Errorf("class %d of %d has %v", c, classes, r)
				}
				continue
			}
			if int(r.offset) != next || r.count == 0 || c > 0 && r.count > uint16(queues/classes+1) {
				t.Errorf("class %d has %v, not from %d", c, r, next)
			}
			next += int(r.count)
		}
		if next != queues {
			t.Errorf("%d of %d queues are given out", next, queues)
		}
	})
}
