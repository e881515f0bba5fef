package workload

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

func selectors(list ...policy.Selector) *policy.Policy {
	var p policy.Policy
	for i, s := range list {
		p.Workloads = append(p.Workloads, policy.Workload{Name: fmt.Sprint(i), Match: []policy.Selector{s}})
	}
	return &p
}

func TestFacts(t *testing.T) {
	dir := testutil.Cgroup2(t)
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	unit := fmt.Sprintf("weir-%d.service", os.Getpid())
	makeCgroups(t, dir, "slice/"+unit, "batch/a")
	base := strings.TrimPrefix(dir, h.V2)
	batch := policy.Cgroup{Pattern: base + "/batch/*"}
	unitPattern := policy.Cgroup{Pattern: "/**/" + unit}
	sleeper := start(t, exec.Command("sleep", "60"))
	gone := start(t, exec.Command("true"))
	_ = gone.cmd.Wait()
	sleep := sleepPath(t)

	p := selectors(
		policy.Selector{Kind: policy.KindPID, PID: sleeper.pid()},
		policy.Selector{Kind: policy.KindPID, PID: gone.pid()},
		policy.Selector{Kind: policy.KindPID, PID: otherThread(t)},
		policy.Selector{Kind: policy.KindCgroup, Cgroup: batch},
		policy.Selector{Kind: policy.KindCgroup, Cgroup: policy.Cgroup{Controller: "name=none-of-weir", Pattern: "/**"}},
		policy.Selector{Kind: policy.KindUnit, Cgroup: unitPattern},
		policy.Selector{Kind: policy.KindUser, User: "root"},
		policy.Selector{Kind: policy.KindUser, User: "54321"},
		policy.Selector{Kind: policy.KindUser, User: "no-such-user-of-weir"},
		policy.Selector{Kind: policy.KindExe, Exe: sleep},
		policy.Selector{Kind: policy.KindExe, Exe: "/no/such/file"},
		policy.Selector{Kind: policy.KindExe, Exe: "/etc/passwd/below"},
	)
	var got plan.Facts
	skipped, err := Facts(t.Context(), p, &got)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"cgroups of the v1 hierarchy name=none-of-weir: not mounted"}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	match := func(path string) []plan.CgroupMatch {
		id, err := CgroupID(dir + path)
		if err != nil {
			t.Fatal(err)
		}
		return []plan.CgroupMatch{{Path: base + path, ID: id}}
	}
	if !slices.Contains(got.UnitNames, unit) || !slices.Contains(got.UserNames, "root") {
		t.Errorf("names of units %v and users %v lack %s or root", got.UnitNames, got.UserNames, unit)
	}
	got.UnitNames, got.UserNames = nil, nil
	want := plan.Facts{
		Cgroup2: h.V2, Cgroup1: h.V1,
		Users:   map[string]uint32{"root": 0, "54321": 54321},
		Exes:    map[string]plan.ExeID{sleep: identify(t, sleep)},
		PIDs:    map[uint32]bool{sleeper.pid(): true},
		Cgroups: map[policy.Cgroup][]plan.CgroupMatch{batch: match("/batch/a"), unitPattern: match("/slice/" + unit)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// otherThread is the id of a thread that is not a process.
func otherThread(t *testing.T) uint32 {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		var tid uint32
		if _, err := fmt.Sscan(task.Name(), &tid); err == nil && tid != uint32(os.Getpid()) {
			return tid
		}
	}
	t.Fatal("this process has one thread only")
	return 0
}

// An ordinary user gets facts too, and is told what could not be looked at.
func TestFactsWithoutRoot(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	dir := t.TempDir()
	for path := dir; path != "/"; path = path[:max(strings.LastIndexByte(path, '/'), 1)] {
		if path == os.TempDir() {
			break
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, self, dir+"/tests")
	if err := os.Mkdir(dir+"/closed", 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/tests", "-test.run=^TestFactsAsOrdinaryUser$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "WEIR_CLOSED="+dir+"/closed/program")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4711, Gid: 4711}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "looked around") {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

func TestFactsAsOrdinaryUser(t *testing.T) {
	closed := os.Getenv("WEIR_CLOSED")
	if closed == "" {
		return
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	var got plan.Facts
	skipped, err := Facts(t.Context(), selectors(
		policy.Selector{Kind: policy.KindPID, PID: 1},
		policy.Selector{Kind: policy.KindCgroup, Cgroup: policy.Cgroup{Pattern: "/"}},
		policy.Selector{Kind: policy.KindExe, Exe: sh},
		policy.Selector{Kind: policy.KindExe, Exe: closed},
	), &got)
	if err != nil {
		t.Fatal(err)
	}
	if !got.PIDs[1] || len(got.Cgroups) != 1 || len(got.Exes) != 1 {
		t.Errorf("facts %+v, want process 1, the root cgroup and %s", got, sh)
	}
	if want := []string{"executable " + closed + ": permission denied"}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	t.Log("looked around")
}

// The facts of a policy of ten thousand workloads, a quarter each of processes,
// cgroups, users and executables.
func BenchmarkFacts(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	var list []policy.Selector
	for i := range 2500 {
		exe := fmt.Sprintf("%s/%d", dir, i)
		if err := os.Symlink(self, exe); err != nil {
			b.Fatal(err)
		}
		list = append(list,
			policy.Selector{Kind: policy.KindPID, PID: uint32(os.Getpid())},
			policy.Selector{Kind: policy.KindCgroup, Cgroup: policy.Cgroup{Pattern: fmt.Sprintf("/slice/%d", i)}},
			policy.Selector{Kind: policy.KindUser, User: fmt.Sprint(10_000 + i)},
			policy.Selector{Kind: policy.KindExe, Exe: exe})
	}
	p := selectors(list...)
	for b.Loop() {
		var into plan.Facts
		if _, err := Facts(b.Context(), p, &into); err != nil {
			b.Fatal(err)
		}
		if len(into.Users) != 2500 || len(into.Exes) != 2500 || len(into.PIDs) != 1 {
			b.Fatalf("%d users, %d executables, %d processes", len(into.Users), len(into.Exes), len(into.PIDs))
		}
	}
}
