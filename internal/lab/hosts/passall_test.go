package hosts

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/testutil"
)

// TestPassAll asks the kernel, and bpftool, for the program while it is there, and once it is gone. A bpftool may be too old to list
// what stands at tcx.
func TestPassAll(t *testing.T) {
	testutil.Needs(t, "tcx", "bpftool")
	n := testNet(t)
	a, b := newTestHost(t, n, "a"), newTestHost(t, n, "b")
	plug := Plug{Host: a, Device: "line"}
	if err := Wire(plug, Plug{Host: b, Device: "far"}, 1); err != nil {
		t.Fatal(err)
	}
	device, err := plug.link()
	if err != nil {
		t.Fatal(err)
	}
	programs := func() []link.AttachedProgram {
		t.Helper()
		var there *link.QueryResult
		err := a.do(func() (err error) {
			there, err = link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index, Attach: ebpf.AttachTCXEgress})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return there.Programs
	}
	failed := errors.New("failed")
	err = plug.PassAll(func() error {
		there := programs()
		if len(there) != 1 {
			t.Fatalf("%d programs", len(there))
		}
		if got := testutil.Output(t, testutil.Tool(t, "bpftool"), "prog", "show", "id", fmt.Sprint(there[0].ID)); !strings.Contains(got, "sched_cls  name pass_all ") {
			t.Errorf("there is %s", got)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want what came of it meanwhile", err)
	}
	if there := programs(); len(there) > 0 {
		t.Errorf("%d programs stay", len(there))
	}
}
