package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// A testHost is a host that is thrown away: a namespace with links, a cgroup, a
// BPF file system and a run directory, and what a guard speaks to.
type testHost struct {
	here, there *testutil.Namespace
	scope       state.Scope
	terminals   string             // directory of its terminals
	terminal    *testutil.Terminal // the only one
	log         *net.UnixConn      // its system log
	logPath     string
}

// newHost makes a host with links of these names. Link i has the addresses
// 10.7.i.1/24 and fd07:i::1/64, and the other end of its wire .2.
func newHost(t testing.TB, links ...string) *testHost {
	t.Helper()
	testutil.Needs(t, "root", "cgroup2")
	h := &testHost{here: testutil.NewNamespace(t), there: testutil.NewNamespace(t)}
	dir := t.TempDir()
	h.scope = state.Scope{
		Cgroup: testutil.Cgroup2(t), Pins: filepath.Join(testutil.BPFFS(t), "weir"),
		Run: filepath.Join(dir, "run"), Netns: h.here.Path(),
	}
	for i, name := range links {
		h.wire(t, i, name)
	}
	h.people(t, dir)
	t.Cleanup(func() {
		if err := (&agent.Agent{Scope: h.scope}).Reset(context.Background()); err != nil {
			t.Errorf("reset: %v", err)
		}
		h.until(t, func() bool { return h.processes("weir\x00") == 0 })
	})
	return h
}

// people gives the host a terminal somebody sits at, and a system log.
func (h *testHost) people(t testing.TB, dir string) {
	t.Helper()
	h.terminals, h.logPath = filepath.Join(dir, "pts"), filepath.Join(dir, "log")
	if err := os.Mkdir(h.terminals, 0o755); err != nil {
		t.Fatal(err)
	}
	h.terminal = testutil.NewTerminal(t, 80, 24)
	if err := os.Symlink(h.terminal.Path, filepath.Join(h.terminals, "0")); err != nil {
		t.Fatal(err)
	}
	var err error
	h.log, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: h.logPath, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.log.Close() })
}

// heard is what was written to the host's terminal, and to its log, up to now.
func (h *testHost) heard() (terminal, log string) {
	b := make([]byte, 4096)
	terminal = h.terminal.Heard(50 * time.Millisecond)
	_ = h.log.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := h.log.Read(b); err == nil {
		log = string(b[:n])
	}
	return terminal, log
}

func (h *testHost) wire(t testing.TB, i int, name string) {
	t.Helper()
	far, err := os.Open(h.there.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = name, 1, 1
	h.here.Do(func() {
		err = netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(int(far.Fd())), PeerNumTxQueues: 1, PeerNumRxQueues: 1,
		})
	})
	if err != nil {
		t.Fatalf("make link %s: %v", name, err)
	}
	for end, ns := range []*testutil.Namespace{h.here, h.there} {
		ns.Do(func() { err = setUp(name, i, end+1) })
		if err != nil {
			t.Fatalf("set up link %s: %v", name, err)
		}
	}
}

func setUp(name string, i, end int) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	for _, text := range []string{fmt.Sprintf("10.7.%d.%d/24", i, end), fmt.Sprintf("fd07:%d::%d/64", i, end)} {
		p := netip.MustParsePrefix(text)
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(l, a); err != nil {
			return err
		}
	}
	return nil
}

// vars are the variables by which the program of this test finds the host.
func (h *testHost) vars(t testing.TB) []string {
	t.Helper()
	text, err := json.Marshal(h.scope)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		scopeVar + "=" + string(text), terminalsVar + "=" + h.terminals, logVar + "=" + h.logPath,
		filesVar + "=" + filepath.Join(h.scope.Run, "..", "files"),
	}
}

// until waits for something that has to come.
func (h *testHost) until(t testing.TB, so func() bool) {
	t.Helper()
	const most = time.Minute // a virtual machine is slow
	for start := time.Now(); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > most {
			t.Fatalf("it is not so after %s", most)
		}
	}
}

// processes counts the processes of this host whose arguments begin so, by what
// is in their environment: guards, watchers, or all of them.
func (h *testHost) processes(begin string) (n int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		if !strings.HasPrefix(string(args), begin) {
			continue
		}
		if vars, _ := os.ReadFile(dir + "/environ"); strings.Contains(string(vars), h.scope.Run) {
			n++
		}
	}
	return n
}

type testKey struct{}

// setup lends a script its test, for what its host needs to be cleaned up.
func setup(e *testscript.Env) error {
	e.Values[testKey{}] = e.T().(testing.TB)
	e.Values[hostKey{}] = new(*testHost)
	return nil
}

type hostKey struct{}

// makeHost makes the host of a script, with links of the names given, and sets
// $cgroup (its path in the v2 hierarchy), $cgroupdir, $rundir and $pins:
//
//	host eth0 eth1
//
// With -initial it has the links of this machine: for net_prio, which knows no
// other namespace and changes none of them.
func makeHost(ts *testscript.TestScript, neg bool, args []string) {
	t := ts.Value(testKey{}).(testing.TB)
	initial := len(args) == 1 && args[0] == "-initial"
	if initial {
		args = nil
	}
	h := newHost(t, args...)
	if initial {
		h.scope.Netns = ""
	}
	*ts.Value(hostKey{}).(**testHost) = h
	for _, v := range h.vars(t) {
		for i := range v {
			if v[i] == '=' {
				ts.Setenv(v[:i], v[i+1:])
				break
			}
		}
	}
	ts.Setenv("cgroup", "/"+filepath.Base(h.scope.Cgroup))
	ts.Setenv("cgroupdir", h.scope.Cgroup)
	ts.Setenv("rundir", h.scope.Run)
	ts.Setenv("pins", h.scope.Pins)
}

// here runs a command on the host of the script, in its namespace and cgroup:
//
//	here tc qdisc show dev eth0
func here(ts *testscript.TestScript, neg bool, args []string) {
	h := *ts.Value(hostKey{}).(**testHost)
	if h == nil {
		ts.Fatalf("here: no host was made")
	}
	join := `echo $$ >"$0/cgroup.procs" && exec "$@"`
	err := ts.Exec("nsenter", append([]string{"--net=" + h.here.Path(), "--", "sh", "-c", join, h.scope.Cgroup}, args...)...)
	if neg && err == nil {
		ts.Fatalf("unexpected success")
	} else if !neg {
		ts.Check(err)
	}
}
