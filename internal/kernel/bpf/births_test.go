package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// nursery is a room whose births are followed, with a cgroup to be born in.
func nursery(t *testing.T, b plan.Births, o Options) (Room, *Generation) {
	t.Helper()
	testutil.Needs(t, "raw_tracepoint", "BTF")
	room := newRoom(t)
	rules := noRules()
	for from, to := range map[*map[string]plan.ContractID]*map[string]plan.ContractID{
		&b.Paths: &rules.Births.Paths, &b.Prefixes: &rules.Births.Prefixes, &b.Names: &rules.Births.Names,
	} {
		for k, v := range *from {
			(*to)[strings.ReplaceAll(k, "@", "/"+filepath.Base(room.Cgroup))] = v
		}
	}
	o.Births = true
	return room, begin(t, room, 1, rules, o)
}

// TestBirths makes cgroups and asks whose the kernel holds them to be. In
// patterns and paths, @ stands for the test's own cgroup.
func TestBirths(t *testing.T) {
	testutil.Proves(t, testutil.Births)
	long := strings.Repeat("n", 127)
	room, g := nursery(t, plan.Births{
		Paths:    map[string]plan.ContractID{"@/whole": 20, "@/pre-whole": 21},
		Prefixes: map[string]plan.ContractID{"@/pre": 22, "@/pre-longer": 23, "@/batch/": 24},
		Names:    map[string]plan.ContractID{"web.service": 25, "pre-named": 26, long: 27},
	}, bare)
	for _, c := range []struct {
		path string
		want plan.ContractID // 0: nobody's by itself
	}{
		{"@/other", 0},
		{"@/whole", 20},
		{"@/whole/child", 0}, // found through its ancestor
		{"@/wholesale", 0},
		{"@/pre", 22},
		{"@/pre-x", 22},
		{"@/pre-x/y", 0}, // "pre*" is one component
		{"@/pre-longer-x", 23},
		{"@/pre-whole", 21}, // the whole path comes before a prefix
		{"@/pre-named", 22}, // a prefix before a name
		{"@/batch", 0},
		{"@/batch/a", 24},
		{"@/batch/a/b", 0},
		{"@/web.service", 25},
		{"@/deep", 0},
		{"@/deep/web.service", 25},
		{"@/deep/web.service2", 0},
		{"@/" + long, 27},
		{"@/" + long + "n", 0},
	} {
		dir := filepath.Join(filepath.Dir(room.Cgroup), strings.ReplaceAll(c.path, "@", filepath.Base(room.Cgroup)))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		id := cgroupID(t, dir)
		if got := claimedAt(t, g, id); got != c.want {
			t.Errorf("%.60s: contract %d, want %d", c.path, got, c.want)
		}
	}
	t.Run("death and birth of the same name", func(t *testing.T) {
		dir := filepath.Join(room.Cgroup, "deep", "web.service")
		old := cgroupID(t, dir)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if got := claimedAt(t, g, old); got != 0 {
			t.Errorf("a cgroup that is gone has contract %d", got)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if now := cgroupID(t, dir); now == old || claimedAt(t, g, now) != 25 {
			t.Errorf("cgroup %d, before %d, has contract %d", now, old, claimedAt(t, g, now))
		}
	})
}

// TestBirthsDeep has paths that are longer than any pattern: prefixes and names
// claim there as elsewhere.
func TestBirthsDeep(t *testing.T) {
	testutil.Proves(t, testutil.Births)
	room, g := nursery(t, plan.Births{
		Paths:    map[string]plan.ContractID{"@/whole": 20},
		Prefixes: map[string]plan.ContractID{"@/pre": 22},
		Names:    map[string]plan.ContractID{"web.service": 25},
	}, bare)
	dir := mkdir(t, room.Cgroup, "pre"+strings.Repeat("x", 252)) // NAME_MAX
	if got := claimedAt(t, g, cgroupID(t, dir)); got != 22 {
		t.Errorf("a prefix of a long name: contract %d", got)
	}
	for length := 256; length < 2048; length += 128 {
		dir = mkdir(t, dir, strings.Repeat("d", 127))
		if got := claimedAt(t, g, cgroupID(t, dir)); got != 0 {
			t.Errorf("path of more than %d characters: contract %d", length, got)
		}
		if got := claimedAt(t, g, cgroupID(t, mkdir(t, dir, "web.service"))); got != 25 {
			t.Errorf("a name below more than %d characters: contract %d", length, got)
		}
	}
}

// TestBirthsLost fills the tables: what finds no room is counted.
func TestBirthsLost(t *testing.T) {
	const name = "lost.service" // of no other test: all births of the host are seen
	room, g := nursery(t, plan.Births{Names: map[string]plan.ContractID{name: 25}}, bare)
	child := startChild(t, testutil.NewNamespace(t), childOptions{cgroup: room.Cgroup})
	s := sockets(t, room)
	tag(t, s, child.pid, plan.FirstID)
	if l, err := g.Losses(); err != nil || l != (Losses{}) {
		t.Fatalf("lost from the start: %+v, %v", l, err)
	}
	cgroups, pids := map[uint64]uint32{}, map[uint32]uint32{} // numbers that the kernel never gives out
	for i := range g.tables[linkEgressMapCgroups].MaxEntries() {
		cgroups[1<<63+uint64(i)] = 1
	}
	for i := range s.tasks.MaxEntries() - 1 {
		pids[1<<31+i] = 1
	}
	if err := errors.Join(fill(g.tables[linkEgressMapCgroups], cgroups), fill(s.tasks, pids)); err != nil {
		t.Fatal(err)
	}
	child.do("spawn")
	child.do("exit")
	mkdir(t, room.Cgroup, name)
	if l, err := g.Losses(); err != nil || l.Tags == 0 || l.Cgroups != 1 {
		t.Errorf("lost %+v, %v", l, err)
	}
	if err := s.TagTask(1<<31-1, 1); !errors.Is(err, ErrFull) {
		t.Errorf("tag one process more: %v", err)
	}
}

// TestBirthsLongest reaches the length that plan says is followed.
func TestBirthsLongest(t *testing.T) {
	testutil.Proves(t, testutil.Births)
	room, _ := nursery(t, plan.Births{}, bare)
	base := "/" + filepath.Base(room.Cgroup) + "/"
	name := ""
	for plan.Followed(policy.Cgroup{Pattern: base + name + "x"}) {
		name += "x"
	}
	if len(base+name) < 200 {
		t.Fatalf("only %d characters are followed", len(base+name))
	}
	rules := noRules()
	rules.Births.Paths[base+name] = 20
	rules.Births.Paths[base+name[1:]] = 21
	g := begin(t, room, 2, rules, Options{Controller: -1, Births: true})
	for text, want := range map[string]plan.ContractID{name: 20, name[1:]: 21, name + "x": 0} {
		dir := mkdir(t, room.Cgroup, text)
		if got := claimedAt(t, g, cgroupID(t, dir)); got != want {
			t.Errorf("path of %d characters: contract %d, want %d", len(base+text), got, want)
		}
	}
}

// TestBirthsOfV1 has children inherit: a socket remembers one v1 cgroup only.
func TestBirthsOfV1(t *testing.T) {
	testutil.Proves(t, testutil.V1Path)
	v1 := testutil.Cgroup1(t, "memory")
	base := "1/" + filepath.Base(v1)
	testutil.Needs(t, "raw_tracepoint", "BTF")
	room := newRoom(t)
	rules := noRules()
	rules.Controller1 = "memory"
	rules.Births.Paths[base+"/job"] = 20
	rules.Births.Prefixes[base+"/batch/"] = 21
	rules.Births.Names["job"] = 22 // names are of v2
	o := Options{Controller: -1, Births: true, Hierarchy1: hierarchyOf(t, "memory")}
	g := begin(t, room, 1, rules, o)
	for _, c := range []struct {
		path string
		want plan.ContractID
	}{
		{"job", 20}, {"job/a", 20}, {"job/a/b", 20}, {"batch", 0}, {"batch/a", 21}, {"batch/a/b", 21}, {"other", 0}, {"other/job", 0},
	} {
		dir := mkdir(t, v1, c.path)
		got, err := g.Rules()
		if err != nil {
			t.Fatal(err)
		}
		if got := got.Cgroups1[cgroupID(t, dir)]; got != c.want {
			t.Errorf("%s: contract %d, want %d", c.path, got, c.want)
		}
		if got.Cgroups[cgroupID(t, dir)] != 0 {
			t.Errorf("%s is filed under v2", c.path)
		}
	}
	t.Run("socket", func(t *testing.T) {
		testutil.Needs(t, "raw_tracepoint")
		w := newWire(t)
		index, err := ControllerIndex("memory")
		if err != nil {
			t.Fatal(err)
		}
		rules := noRules()
		rules.Controller1 = "memory"
		rules.Births.Paths[base+"/late"] = plan.FirstID + 1
		o.Controller = index
		w.publish(rules, o)
		c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
		w.expect(ladderClass, 1, func() { c.do("udp %s", w.to4(4000)) })
		join(t, mkdir(t, mkdir(t, v1, "late"), "child"), c.pid)
		w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to4(4000)) })
		join(t, v1, c.pid)
		w.expect(ladderClass, 1, func() { c.do("udp %s", w.to4(4000)) })
	})
}

// TestBirthsOfSockets sends from cgroups that are younger than the policy.
func TestBirthsOfSockets(t *testing.T) {
	testutil.Proves(t, testutil.Births)
	testutil.Needs(t, "raw_tracepoint", "BTF")
	w := newWire(t)
	base := "/" + filepath.Base(w.room.Cgroup)
	rules := noRules()
	rules.Births.Paths[base+"/a"] = plan.FirstID + 1
	rules.Births.Names["b.service"] = plan.FirstID + 2
	o := bare
	o.Births = true
	w.publish(rules, o)
	for path, class := range map[string]int{
		"a": firstClass + 1, "a/deeper": firstClass + 1, "a/deeper/b.service": firstClass + 2, "c": ladderClass,
	} {
		dir := filepath.Join(w.room.Cgroup, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		c := startChild(t, w.here, childOptions{cgroup: dir})
		w.expect(class, 1, func() { c.do("udp %s", w.to4(4000)) })
	}
}

func claimedAt(t *testing.T, g *Generation, id uint64) plan.ContractID {
	t.Helper()
	rules, err := g.Rules()
	if err != nil {
		t.Fatal(err)
	}
	return rules.Cgroups[id]
}

// hierarchyOf reads the number of a v1 hierarchy as the kernel gives it out.
func hierarchyOf(t *testing.T, controller string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == controller {
			return int(atoi(t, f[1]))
		}
	}
	t.Fatalf("no controller %s", controller)
	return 0
}
