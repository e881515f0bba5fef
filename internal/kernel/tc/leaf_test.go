package tc

import (
	"testing"

	"pgregory.net/rapid"
)

// TestCodelTime: what is set for a time that was dumped is dumped as that time.
func TestCodelTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dumped := shown(rapid.Uint32Range(0, 1<<31).Draw(t, "us"))
		if again := shown(dumped.set()); again != dumped {
			t.Errorf("%d is set as %d and dumped as %d", dumped, dumped.set(), again)
		}
	})
	if shown(5000) != 4999 || shown(4999) != 4998 { // as tc sees it
		t.Errorf("5000 is dumped as %d and 4999 as %d", shown(5000), shown(4999))
	}
}
