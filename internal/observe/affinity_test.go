package observe

import (
	"errors"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/thread"
)

func TestKeepOff(t *testing.T) {
	testutil.Needs(t, "2 CPUs")
	before, err := thread.Affinities()
	if err != nil {
		t.Fatal(err)
	}
	back, err := KeepOff(0)
	if err != nil {
		t.Fatal(err)
	}
	during, err := thread.Affinities()
	if err != nil {
		t.Fatal(err)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	after, err := thread.Affinities()
	if err != nil || during != 1 || after != before {
		t.Errorf("on %d CPUs, then %d, then %d, %v", before, during, after, err)
	}
	if err := pinned(0, func() error {
		back, err := KeepOff(0) // this process may run on others
		return errors.Join(err, back())
	}); err != nil {
		t.Error(err)
	}
}
