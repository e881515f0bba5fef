package inside

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/names"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/testutil"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Argument {
		os.Exit(Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	testutil.Leaks(m)
}

// A program in a place has the files of the place, its namespace and its cgroup; the host has none
// of these files, and nothing is left.
func TestPlace(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "getent")
	ns, cgroup, ctx := testutil.NewNamespace(t), testutil.Cgroup2(t), context.Background()
	at := netip.MustParseAddrPort("127.0.0.53:53")
	server, err := names.Serve(ns.Path(), at, netip.MustParseAddr("192.0.2.7"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	greeter, err := traffic.Greet(ns.Path(), netip.MustParseAddrPort("127.0.0.1:80"), "data")
	if err != nil {
		t.Fatal(err)
	}
	defer greeter.Close()
	p, err := New(ns.Path(), cgroup, Files{
		Texts: map[string]string{
			"/etc/nsswitch.conf": "hosts: files dns\n", "/etc/hosts": "", "/run/weir-test/resolv.conf": "nameserver 127.0.0.53\n",
		},
		Links: map[string]string{"/etc/resolv.conf": "../run/weir-test/resolv.conf"},
	})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			p.Close()
		}
	}()
	run := func(command ...string) (string, int) {
		t.Helper()
		path, err := exec.LookPath(command[0])
		if err != nil {
			t.Fatal(err)
		}
		command[0] = path
		out, code, err := p.Run(ctx, "", command...)
		if err != nil {
			t.Fatal(err)
		}
		return out, code
	}
	for _, name := range []string{"www.weir.test", names.Long + "weir.test"} {
		if out, code := run("getent", "ahosts", name); code != 0 || !strings.HasPrefix(out, "192.0.2.7 ") {
			t.Errorf("%s: %d %q", name, code, out)
		}
	}
	if out, code := run("sh", "-c", "cat /proc/self/cgroup; exit 7"); code != 7 || !strings.Contains(out, filepath.Base(cgroup)+"\n") {
		t.Errorf("a program ends with %d in cgroup %q", code, out)
	}
	if said, ok, err := p.Hear(ctx, "", "127.0.0.1:80"); said != "data" || !ok || err != nil {
		t.Errorf("heard %q, %t, %v", said, ok, err)
	}
	if said, ok, err := p.Hear(ctx, "", "127.0.0.1:81"); ok || err != nil {
		t.Errorf("where nobody is: heard %q, %v", said, err)
	}
	if text, err := os.ReadFile(p.Root() + "/etc/resolv.conf"); err != nil || string(text) != "nameserver 127.0.0.53\n" {
		t.Errorf("by the place's root: %q, %v", text, err)
	}
	if _, err := os.Stat("/run/weir-test"); err == nil {
		t.Error("the host has the place's files")
	}
	if _, _, err := p.Run(ctx, "", "/no/such/program"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, _, err := p.Run(ctx, "no-such-vrf", "/bin/true"); err == nil {
		t.Error("a VRF that is not there")
	}
	limited, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, _, err := p.Run(limited, "", "/bin/sleep", "20"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that takes too long: %v", err)
	}
	closed = true
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// Files that can not be made are told.
func TestPlaceWithoutFiles(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	ns, cgroup := testutil.NewNamespace(t), testutil.Cgroup2(t)
	_, err := New(ns.Path(), cgroup, Files{Texts: map[string]string{"/proc/none/such": ""}})
	if err == nil || !strings.Contains(err.Error(), "/proc/none") {
		t.Errorf("got %v", err)
	}
	if _, err := New(ns.Path(), cgroup+"/none", Files{}); err == nil {
		t.Error("a cgroup that is not there")
	}
}
