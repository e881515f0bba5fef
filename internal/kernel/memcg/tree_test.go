package memcg

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// A bench is two cgroups, one below the other, and the tree that limits them.
type bench struct {
	Tree
	group, below string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := testutil.Cgroup1(t, "memory")
	testutil.Needs(t, "kmem.tcp")
	if err := os.Mkdir(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	group := "/" + filepath.Base(dir)
	b := &bench{Tree{Mount: filepath.Dir(dir), RunDir: t.TempDir()}, group, group + "/below"}
	t.Cleanup(func() {
		if err := b.Remove(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) apply(t *testing.T, want map[string]policy.Size) {
	t.Helper()
	if err := b.Apply(want); err != nil {
		t.Fatal(err)
	}
}

// limits are what the kernel has, in order of the groups.
func (b *bench) limits(t *testing.T, groups ...string) (all []uint64) {
	t.Helper()
	for _, group := range groups {
		limit, err := readNumber(b.Mount+group, limitFile)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, limit)
	}
	return all
}

// reads fails the test unless what is read back is this, as far as it is not counted.
func (b *bench) reads(t *testing.T, want map[string]Group) {
	t.Helper()
	got, err := b.Read()
	for at, g := range got {
		got[at] = Group{Max: g.Max, Open: g.Open}
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
}

// TestApply limits a cgroup with what is below it, changes that, and takes it back.
func TestApply(t *testing.T) {
	b := newBench(t)
	before := b.limits(t, b.group, b.below)
	b.reads(t, map[string]Group{})
	const odd = 300000 // no whole number of pages
	b.apply(t, map[string]policy.Size{b.group: odd})
	b.reads(t, map[string]Group{b.group: {Max: odd}})
	for _, limit := range b.limits(t, b.group, b.below) {
		if !same(limit, odd) {
			t.Errorf("%d is the limit", limit)
		}
	}
	b.apply(t, map[string]policy.Size{b.group: 8 << 20, b.below: 1 << 20})
	b.reads(t, map[string]Group{b.group: {Max: 8 << 20}, b.below: {Max: 1 << 20}})

	born := b.group + "/born"
	if err := os.Mkdir(b.Mount+born, 0o755); err != nil {
		t.Fatal(err)
	}
	b.reads(t, map[string]Group{b.group: {Max: 8 << 20, Open: 1}, b.below: {Max: 1 << 20}})
	if err := writeLimit(b.Mount+b.below, 2<<20); err != nil { // somebody else
		t.Fatal(err)
	}
	b.reads(t, map[string]Group{b.group: {Max: 8 << 20, Open: 2}, b.below: {Max: 2 << 20}})
	b.apply(t, map[string]policy.Size{b.group: 8 << 20})
	b.reads(t, map[string]Group{b.group: {Max: 8 << 20}})
	b.apply(t, map[string]policy.Size{b.below: 4 << 20})
	if now := b.limits(t, b.group, born); now[0] != before[0] || now[1] != before[0] {
		t.Errorf("limits are %d, were %d", now, before)
	}

	if err := os.Remove(b.Mount + b.below); err != nil {
		t.Fatal(err)
	}
	b.reads(t, map[string]Group{})
	for range 2 {
		if err := b.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(b.RunDir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := (Tree{RunDir: b.RunDir}).Apply(map[string]policy.Size{b.group: odd}); !errors.Is(err, ErrNoHierarchy) {
		t.Errorf("without a hierarchy: %v", err)
	}
}

// A limit that was there before comes back, whatever was asked for meanwhile.
func TestRemove(t *testing.T) {
	b := newBench(t)
	if err := writeLimit(b.Mount+b.below, 3<<20); err != nil {
		t.Fatal(err)
	}
	before := b.limits(t, b.group, b.below)
	for _, limit := range []policy.Size{1 << 20, 2 << 20} {
		b.apply(t, map[string]policy.Size{b.group: limit})
	}
	if err := b.Remove(); err != nil {
		t.Fatal(err)
	}
	if now := b.limits(t, b.group, b.below); now[0] != before[0] || now[1] != before[1] {
		t.Errorf("limits are %d, were %d", now, before)
	}
}

// TestHolds has a process below the cgroup write to a peer that does not read: the kernel
// gives its sockets no more, and no limit below what they hold is taken.
func TestHolds(t *testing.T) {
	testutil.Needs(t, "python3")
	b := newBench(t)
	const most, connections = 4 << 20, 20
	b.apply(t, map[string]policy.Size{b.group: most})
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("python3", "-c", strings.Join([]string{
		"import os, socket, time",
		fmt.Sprintf("open(%q, 'w').write(str(os.getpid()))", b.Mount+b.below+"/cgroup.procs"),
		fmt.Sprintf("for i in range(%d):", connections),
		fmt.Sprintf("  s = socket.create_connection(('127.0.0.1', %d)); s.setblocking(False)", l.Addr().(*net.TCPAddr).Port),
		"  globals()[f's{i}'] = s",
		"  try:",
		"    while True: s.send(bytes(65536))",
		"  except BlockingIOError: pass",
		"time.sleep(60)",
	}, "\n"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var g Group
	for begin := time.Now(); g.Used < most*9/10 && time.Since(begin) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
		all, err := b.Read()
		if err != nil {
			t.Fatal(err)
		}
		g = all[b.group]
	}
	t.Logf("%+v", g)
	// Each may have a segment beyond; failcnt is no witness, some kernels leave it at 0.
	if g.Used < most*9/10 || g.Highest > most+connections*74<<10 {
		t.Errorf("below %d: %+v", most, g)
	}
	if err := b.Apply(map[string]policy.Size{b.group: 256 << 10}); !errors.Is(err, ErrInUse) {
		t.Errorf("a limit below what is held: %v", err)
	}
}
