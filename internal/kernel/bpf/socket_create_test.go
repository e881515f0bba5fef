package bpf

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

func TestEgressByCgroup(t *testing.T) {
	testutil.Proves(t, testutil.Local)
	w := newWire(t)
	outer := mkdir(t, w.room.Cgroup, "outer")
	middle := mkdir(t, outer, "middle")
	inner := mkdir(t, middle, "inner")
	rules := ports(1000)
	rules.Cgroups[cgroupID(t, outer)] = plan.FirstID + 1
	rules.Cgroups[cgroupID(t, inner)] = plan.FirstID + 2
	w.publish(rules, bare)
	for dir, class := range map[string]int{
		outer: firstClass + 1, middle: firstClass + 1, inner: firstClass + 2, w.room.Cgroup: ladderClass,
	} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c := startChild(t, w.here, childOptions{cgroup: dir})
			w.expect(class, 1, func() { c.do("udp %s", w.to4(4000)) })
			w.expect(class, 1, func() { c.do("udp %s", w.to6(4000)) })
		})
	}
	t.Run("before headers", func(t *testing.T) {
		c := startChild(t, w.here, childOptions{cgroup: outer})
		w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to4(1000)) })
	})
	t.Run("root", func(t *testing.T) {
		root := noRules()
		root.Cgroups[cgroupID(t, filepath.Dir(w.room.Cgroup))] = plan.FirstID + 3
		root.Cgroups[cgroupID(t, inner)] = plan.FirstID + 2
		w.publish(root, bare)
		for dir, class := range map[string]int{middle: firstClass + 3, inner: firstClass + 2} {
			c := startChild(t, w.here, childOptions{cgroup: dir})
			w.send(class, 1, false, func() { c.do("udp %s", w.to4(4000)) })
		}
	})
}

// TestEgressDepth goes deeper than the kernel side looks: the ancestors count.
func TestEgressDepth(t *testing.T) {
	testutil.Proves(t, testutil.Local)
	w := newWire(t)
	dir := w.room.Cgroup
	rules := noRules()
	rules.Cgroups[cgroupID(t, dir)] = plan.FirstID + 1
	for range 40 {
		dir = mkdir(t, dir, "d")
	}
	w.publish(rules, bare)
	c := startChild(t, w.here, childOptions{cgroup: dir})
	w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to4(4000)) })
}

func TestEgressByUser(t *testing.T) {
	testutil.Proves(t, testutil.Local)
	w := newWire(t)
	rules := ports(1000)
	rules.Users[12345] = plan.FirstID + 1
	rules.Users[65534] = plan.FirstID + 2 // what the kernel calls a packet without a socket
	w.publish(rules, bare)
	c := startChild(t, w.here, childOptions{})
	w.expect(ladderClass, 1, func() { c.do("udp %s", w.to4(4000)) })
	c.do("open %s", w.to4(4000))
	c.do("uid 12345")
	w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to4(4000)) })
	w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to6(1000)) })
	// A socket belongs to the user who made it.
	w.expect(ladderClass, 1, func() { c.do("send") })
	t.Run("TIME_WAIT is not nobody's user", func(t *testing.T) {
		l := w.listen(w.there, w.to4(1000))
		w.expect(firstClass, 4, func() {
			a := w.dial(w.here, w.to4(1000))
			b := accept(t, l)
			a.Close() // the end that closes first waits
			_, _ = io.ReadAll(b)
			b.Close() // its FIN is answered out of TIME_WAIT
		})
	})
}

func TestEgressByExe(t *testing.T) {
	testutil.Proves(t, testutil.Local)
	w := newWire(t)
	exe := copyOfTest(t)
	rules := noRules()
	rules.Exes[exeOf(t, exe)] = plan.FirstID + 1
	w.publish(rules, bare)
	same := startChild(t, w.here, childOptions{exe: exe, cgroup: w.room.Cgroup})
	w.expect(firstClass+1, 1, func() { same.do("udp %s", w.to4(4000)) })
	w.expect(firstClass+1, 1, func() { same.do("udp %s", w.to6(4000)) })
	other := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
	w.expect(ladderClass, 1, func() { other.do("udp %s", w.to4(4000)) })
	t.Run("not tracked without need", func(t *testing.T) {
		w.publish(noRules(), bare)
		w.expect(ladderClass, 1, func() { same.do("udp %s", w.to4(4000)) })
	})
}

// TestPrecedence lets a socket be claimed by everything, and takes one claim
// after the other away.
func TestPrecedence(t *testing.T) {
	testutil.Proves(t, testutil.Local)
	w := newWire(t)
	v1 := testutil.Cgroup1(t, "memory")
	inV1 := mkdir(t, v1, "job")
	exe := copyOfTest(t)
	index, err := ControllerIndex("memory")
	if err != nil {
		t.Fatal(err)
	}
	c := startChild(t, w.here, childOptions{exe: exe, cgroup: w.room.Cgroup})
	join(t, inV1, c.pid)
	c.do("uid 12345") // the kernel's own packets are of user 0
	rules := ports(4000)
	rules.Controller1 = "memory"
	rules.Exes[exeOf(t, exe)] = plan.FirstID + 1
	rules.Users[12345] = plan.FirstID + 2
	rules.Cgroups1[cgroupID(t, inV1)] = plan.FirstID + 3
	rules.Cgroups[cgroupID(t, w.room.Cgroup)] = plan.FirstID + 4
	o := Options{Controller: index}
	w.publish(rules, o)
	s := sockets(t, w.room)
	tag(t, s, c.pid, plan.FirstID+5)
	send := func() { c.do("udp %s", w.to4(4000)) }
	w.expect(firstClass+5, 1, send)
	if err := s.UntagTask(uint32(c.pid)); err != nil {
		t.Fatal(err)
	}
	for n, take := range []func(){
		func() {}, func() { clear(rules.Cgroups) }, func() { clear(rules.Cgroups1) }, func() { clear(rules.Users) }, func() { clear(rules.Exes) },
	} {
		take()
		w.publish(rules, o)
		w.expect(firstClass+4-n, 1, send)
	}
}

func mkdir(t *testing.T, parent, name string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func cgroupID(t testing.TB, dir string) uint64 {
	t.Helper()
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	return binary.NativeEndian.Uint64(h.Bytes())
}

func exeOf(t *testing.T, path string) plan.ExeID {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return plan.ExeID{Device: unix.Major(st.Dev)<<20 | unix.Minor(st.Dev), Inode: st.Ino}
}

// copyOfTest is the test's executable as another file.
func copyOfTest(t *testing.T) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(t.TempDir(), "copy")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func join(t testing.TB, cgroup string, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
}
