package hosts

import (
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// Namespaces live by descriptors alone, so a leak of one is a descriptor's.
func TestMain(m *testing.M) { testutil.Leaks(m) }
