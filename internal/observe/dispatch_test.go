package observe

import (
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// To run a program takes some time, and no more than a call of the kernel does.
func TestDispatch(t *testing.T) {
	testutil.Needs(t, "BTF")
	took, err := dispatch()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(took)
	if took < time.Nanosecond || took > 5*time.Microsecond {
		t.Errorf("it takes %s", took)
	}
}
