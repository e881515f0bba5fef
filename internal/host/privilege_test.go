package host

import (
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestMissingCapabilitiesOfRoot(t *testing.T) {
	testutil.Needs(t, "root")
	if missing, err := MissingCapabilities(); err != nil || len(missing) != 0 {
		t.Errorf("got %v, %v", missing, err)
	}
}

func TestMissingCapabilitiesOfNobody(t *testing.T) {
	out := asNobody(t, "capabilities")
	if want := "missing CAP_NET_ADMIN CAP_SYS_ADMIN CAP_SYS_PTRACE\n"; out != want {
		t.Errorf("got %q", out)
	}
}
