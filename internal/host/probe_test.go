package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// The probes of the tests are other probes: both must tell the same.
func TestProbeAgreesWithTheProbesOfTheTests(t *testing.T) {
	testutil.Needs(t, "root")
	f := Probe(context.Background())
	for name, why := range f.Unknown {
		t.Errorf("%s is not known to root: %s", name, why)
	}
	for name, got := range map[string]bool{
		"tcx": f.TCX, "bpf classifier": f.ClsBPF, "sk_storage": f.SKStorage, "sock_create": f.SockCreate,
		"raw_tracepoint": f.RawTracepoint, "pidfd": f.PidfdGetfd, "BTF": f.BTF, "net_prio": f.NetPrio, "sock_cgroup": f.SockCgroup,
		"BPF atomics": f.Atomics, "BPF tail calls": f.TailCalls, "sock_ops": f.SockOps,
	} {
		want, err := feature.Has(name)
		if err != nil {
			t.Error(err)
		}
		if got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if f.Qdiscs != nil {
		t.Errorf("qdiscs are another room's: %v", f.Qdiscs)
	}
}

// What the first apply of a boot pays.
func BenchmarkProbe(b *testing.B) {
	testutil.Needs(b, "root")
	for b.Loop() {
		if f := Probe(b.Context()); len(f.Unknown) > 0 {
			b.Fatal(f.Unknown)
		}
	}
}

func TestProbeLeavesNothing(t *testing.T) {
	testutil.Needs(t, "root")
	Probe(context.Background()) // what the runtime and the libraries keep for ever
	fds, outside := descriptors(t), current(t)

	Probe(context.Background())

	if got := descriptors(t); got != fds {
		t.Errorf("%d descriptors before, %d after", fds, got)
	}
	if got := current(t); got != outside {
		t.Errorf("in %s, was in %s", got, outside)
	}
	mounts := text(t, "/proc/self/mountinfo")
	if strings.Contains(mounts, programName) {
		t.Errorf("a mount is left:\n%s", mounts)
	}
	if mount, err := feature.Cgroup2Mount(); err != nil {
		t.Error(err)
	} else if left, err := filepath.Glob(fmt.Sprintf("%s/%s-%d*", mount, programName, os.Getpid())); err != nil || left != nil {
		t.Errorf("cgroups are left: %v, %v", left, err)
	}
	// The kernel takes programs and namespaces down after a grace period, and
	// other processes may probe meanwhile.
	if !eventually(func() bool { return !loaded(t, programName) }) {
		t.Error("a program is left")
	}
}

// A hierarchy that is left shows in /proc/cgroups, as long as somebody has mounted it, in whatever mount namespace, or
// it has a cgroup below its root: one that was removed stays until the last process that was in it is gone and reaped.
// The probe makes no cgroup, and takes away what others have left without one.
func TestProbeLeavesNoHierarchy(t *testing.T) {
	testutil.Needs(t, "net_prio")
	explained := func() bool {
		id, cgroups := hierarchy(t, "net_prio")
		return id == 0 || cgroups > 1 || mounted(t, "net_prio")
	}
	eventually(explained) // that of Needs goes first: beside it the probe would be told EBUSY, and make none
	if err := netPrio(); err != nil {
		t.Fatal(err)
	}
	if !eventually(explained) {
		t.Errorf("net_prio is in a hierarchy that nobody has mounted, without a cgroup:\n%s", text(t, "/proc/cgroups"))
	}
}

// mounted reports whether the hierarchy of a v1 controller is mounted where some process sees it.
func mounted(t *testing.T, controller string) bool {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(processes, func(path string) bool {
		mounts, err := os.ReadFile(path) // those of a process that has ended meanwhile are none
		return err == nil && strings.Contains(string(mounts), controller)
	})
}

// Without privileges nearly nothing can be tried, and then nothing is claimed.
func TestProbeOfNobodyKnowsThatItDoesNotKnow(t *testing.T) {
	out := asNobody(t, "probe")
	for _, name := range []string{
		plan.FeatureTCX, plan.FeatureClsBPF, plan.FeatureSKStorage, plan.FeatureSockCreate, plan.FeatureRawTracepoint,
		plan.FeaturePidfdGetfd, plan.FeatureNetPrio, plan.FeatureAtomics, plan.FeatureTailCalls, plan.FeatureSockOps,
	} {
		if !strings.Contains(out, "unknown "+name+": ") {
			t.Errorf("%s is not unknown:\n%s", name, out)
		}
	}
	if strings.Contains(out, "found something") {
		t.Error(out)
	}
}

func TestProbeEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := Probe(ctx)
	for _, p := range probes(&f) {
		if *p.found || f.Unknown[p.feature] != context.Canceled.Error() {
			t.Errorf("%s: %v, %q", p.feature, *p.found, f.Unknown[p.feature])
		}
	}
}

func TestAbsent(t *testing.T) {
	odd := errors.New("odd")
	for _, tt := range []struct {
		name   string
		err    error
		absent bool
	}{
		{"listed", absentOn(unix.ENOENT, unix.EINVAL, unix.ENOENT), true},
		{"other", absentOn(unix.EPERM, unix.EINVAL), false},
		{"narrower says so", narrowed(odd, fmt.Errorf("x: %w", ebpf.ErrNotSupported)), true},
		{"narrower does not know", narrowed(fmt.Errorf("x: %w", ebpf.ErrNotSupported), unix.EPERM), false},
		{"narrower finds it", narrowed(odd, nil), false},
	} {
		if tt.err == nil || errors.Is(tt.err, ebpf.ErrNotSupported) != tt.absent {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
	if err := absentOn(nil, unix.EINVAL); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// A socket of a process that is in groups of both keeps its v2 cgroup, as ss
// shows, where the probe says that it does.
func TestSockCgroup(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "net_prio", "ss", "sock_cgroup")
	ns := testutil.NewNamespace(t)
	v1, v2 := testutil.Cgroup1(t, "net_prio"), testutil.Cgroup2(t)
	dir, err := os.Open(v2)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helper+"=socket")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := InNetns(ns.Path(), cmd.Start); err != nil {
		t.Fatal(err)
	}
	defer func() { stdin.Close(); _ = cmd.Wait() }()
	if err := os.WriteFile(filepath.Join(v1, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Fscan(stdout, &port); err != nil {
		t.Fatal(err)
	}
	out := ns.Output("ss", "-uanH", "--cgroup")
	if !strings.Contains(out, fmt.Sprintf("127.0.0.1:%d ", port)) || !strings.Contains(out, "cgroup:/"+filepath.Base(v2)) {
		t.Errorf("the socket on port %d is not in cgroup %s:\n%s", port, filepath.Base(v2), out)
	}
}

// The layouts that the type has had, and one that it has not.
func TestOwnCgroup(t *testing.T) {
	u64 := &btf.Int{Name: "u64", Size: 8}
	cgroup := btf.Member{Name: "cgroup", Type: &btf.Pointer{Target: &btf.Struct{Name: "cgroup"}}}
	bits := btf.Member{Type: &btf.Struct{Members: []btf.Member{{Name: "is_data"}, {Name: "prioidx"}, {Name: "classid"}}}}
	for _, tt := range []struct {
		name    string
		members []btf.Member
		own     bool
		absent  bool
	}{
		{"separate", []btf.Member{cgroup, {Name: "classid", Type: u64}, {Name: "prioidx", Type: u64}}, true, false},
		{"alone", []btf.Member{cgroup}, true, false},
		{"shared", []btf.Member{{Type: &btf.Union{Members: []btf.Member{bits, {Name: "val", Type: u64}}}}}, false, true},
		{"unknown", []btf.Member{{Name: "id", Type: u64}}, false, false},
	} {
		err := ownCgroup(&btf.Struct{Name: "sock_cgroup_data", Members: tt.members})
		if (err == nil) != tt.own || errors.Is(err, ebpf.ErrNotSupported) != tt.absent {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What a kernel lacks must come out as absent, not as unknown: the file system
// types stand for it here, since no kernel has these.
func TestMountAsideOfWhatIsAbsent(t *testing.T) {
	testutil.Needs(t, "root")
	if _, err := mountAside("nosuchfs", ""); !errors.Is(err, unix.ENODEV) {
		t.Errorf("got %v", err)
	}
	if _, err := mountAside("cgroup", "nosuchcontroller"); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
}

func eventually(cond func() bool) bool {
	for range 100 {
		if cond() {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// loaded reports whether the kernel holds a program of this name.
func loaded(t *testing.T, name string) bool {
	t.Helper()
	id, err := ebpf.ProgramGetNextID(0)
	for ; err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := p.Info()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		if info.Name == name {
			return true
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return false
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// hierarchy is the number of the v1 hierarchy that a controller is in, 0 for none, and how many cgroups that has, its
// root and those that are being freed included.
func hierarchy(t *testing.T, controller string) (id, cgroups int) {
	t.Helper()
	for line := range strings.Lines(text(t, "/proc/cgroups")) {
		if rest, ok := strings.CutPrefix(line, controller+"\t"); ok {
			if _, err := fmt.Sscan(rest, &id, &cgroups); err != nil {
				t.Fatal(err)
			}
		}
	}
	return id, cgroups
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
