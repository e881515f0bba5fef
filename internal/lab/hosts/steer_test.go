package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/testutil"
)

func TestSteer(t *testing.T) {
	testutil.Needs(t, "root")
	var n Net
	defer n.Close()
	a, err := n.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.Host("b")
	if err != nil {
		t.Fatal(err)
	}
	near, far := Plug{Host: a, Device: "wire"}, Plug{Host: b, Device: "wire"}
	if err := Wire(near, far, 1); err != nil {
		t.Fatal(err)
	}
	if err := far.Steer(0); err != nil {
		t.Fatal(err)
	}
	for plug, want := range map[*Plug]string{&near: "0", &far: "1"} {
		err := plug.Host.do(func() error {
			return steer.InSysfs(func(root string) error {
				text, err := os.ReadFile(filepath.Join(root, "class/net/wire/queues/rx-0/rps_cpus"))
				if got := strings.Trim(strings.TrimSpace(string(text)), "0,"); got != strings.Trim(want, "0") {
					t.Errorf("%s is steered to %q, want %q", plug, text, want)
				}
				return err
			})
		})
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat("/sys/class/net/wire"); err == nil {
		t.Error("sysfs of the host knows the wire")
	}
}
