package host

import (
	"syscall"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestMissingCapabilitiesOfRoot(t *testing.T) {
	testutil.Needs(t, "root")
	if missing, err := MissingCapabilities(); err != nil || len(missing) != 0 {
		t.Errorf("got %v, %v", missing, err)
	}
}

const all = "missing CAP_NET_ADMIN CAP_SYS_ADMIN CAP_SYS_PTRACE\n"

func TestMissingCapabilitiesOfNobody(t *testing.T) {
	if out := asNobody(t, "capabilities"); out != all {
		t.Errorf("got %q", out)
	}
}

// Root of a user namespace of its own has every capability there, and none here.
func TestMissingCapabilitiesOfAnotherRoot(t *testing.T) {
	testutil.Needs(t, "user namespace")
	root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
	out := as(t, "capabilities", &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: root, GidMappings: root,
	})
	if out != all {
		t.Errorf("got %q", out)
	}
}
