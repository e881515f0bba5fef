package bind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/testutil"
)

// enterVar has this program enter a cgroup, bound to a device, and tell what a new socket says.
const enterVar = "WEIR_TEST_ENTER"

func TestMain(m *testing.M) {
	if cgroup := os.Getenv(enterVar); cgroup != "" {
		index, _ := strconv.Atoi(os.Args[1])
		err := Enter(cgroup, index)
		got, newErr := New()
		fmt.Println(got, errors.Join(err, newErr))
		return
	}
	testutil.Leaks(m)
}

func entered(t *testing.T, cgroup string, index int) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", strconv.Itoa(index))
	cmd.Env = append(os.Environ(), enterVar+"="+cgroup)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// A cgroup binds what is made in it, and in those below. Any device will do: the kernel looks at it only when
// a socket sends.
func TestBind(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "sock_create")
	top := testutil.Cgroup2(t)
	mgmt, below := filepath.Join(top, "vrf", "mgmt"), filepath.Join(top, "vrf", "mgmt", "below")
	if got := entered(t, mgmt, 1); got != "1 <nil>\n" {
		t.Errorf("entered: %s", got)
	}
	// Once more, and another device: the program is replaced.
	for _, index := range []int{1, 7} {
		if got := entered(t, mgmt, index); got != fmt.Sprintf("%d <nil>\n", index) {
			t.Errorf("entered again: %s", got)
		}
	}
	if err := Make(below); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string][]int{top: nil, mgmt: {7}, below: {7}} {
		if got, err := Devices(dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: devices %v, %v; want %v", dir, got, err, want)
		}
	}
	// A program of a cgroup above has the last word, and that is told.
	p, err := program(9)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: top, Attach: ebpf.AttachCGroupInetSockCreate, Program: p})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got, want := entered(t, mgmt, 7), "9 a program of a cgroup above "+mgmt+" binds sockets to device 9: "+ErrOutvoted.Error()+"\n"; got != want {
		t.Errorf("below another program: %swant %s", got, want)
	}
}

// A pin is replaced by the next, and goes with its directory.
func TestPin(t *testing.T) {
	testutil.Needs(t, "root", "sock_create")
	path := filepath.Join(testutil.BPFFS(t), "weir-vrf", "mgmt")
	for _, index := range []int{3, 4} {
		if err := Pin(path, index); err != nil {
			t.Fatal(err)
		}
		p, err := ebpf.LoadPinnedProgram(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := p.Info()
		p.Close()
		if err != nil || info.Name != fmt.Sprintf("vrf_%d", index) {
			t.Errorf("pinned %v, %v", info, err)
		}
	}
	for range 2 {
		if err := Unpin(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}
