package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// patience is far beyond what a boot and the longest command here take, even
// on a machine that has other work.
const patience = 3 * time.Minute

// run runs the script and returns what it printed and its status.
func run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./run", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("run %q hangs:\n%s%s", args, &out, &errs)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func needsMachine(t *testing.T) {
	t.Helper()
	testutil.Needs(t, "root", "qemu-system-x86_64", "kernel 6.1")
}

func TestOutputAndStatus(t *testing.T) {
	needsMachine(t)
	out, errs, status := run(t, "--kernel", "6.1", "sh", "-c", `uname -r; echo "$1" >&2; [ -e ./run ] || exit 3; exit 7`, "sh", "a  'b")
	if status != 7 || errs != "" || !strings.HasPrefix(out, "6.1.") || !strings.Contains(out, "a  'b") {
		t.Errorf("status %d, output %q, errors %q", status, out, errs)
	}
}

// TestProgram runs this very binary in the guest, as go test -exec does.
func TestProgram(t *testing.T) {
	if os.Getenv("WEIR_VM_INSIDE") != "" {
		fmt.Println("inside", os.Getpid() != 1)
		return
	}
	needsMachine(t)
	program := filepath.Join(t.TempDir(), "vm.test")
	build := exec.Command("go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("WEIR_VM_INSIDE", "1")
	out, errs, status := run(t, "--kernel", "6.1", program, "-test.run=^TestProgram$", "-test.v")
	if status != 0 || !strings.Contains(out, "inside true") || !strings.Contains(out, "PASS: TestProgram") {
		t.Errorf("status %d, output %q, errors %q", status, out, errs)
	}
}

func TestMachineThatFails(t *testing.T) {
	t.Parallel() // one of them hangs
	for _, tt := range []struct {
		name    string
		args    []string
		command string
		says    []string
	}{
		{"panic", nil, "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 60",
			[]string{"ended before its command did", "Kernel panic - not syncing: sysrq triggered crash"}},
		{"panic at boot", []string{"--append", "rdinit=/none root=/dev/none"}, "true",
			[]string{"ended before its command did", "Kernel panic - not syncing: VFS"}},
		{"hang", []string{"--timeout", "40"}, "echo still here >/dev/ttyS0; sleep 1000",
			[]string{"stopped after 40 s", "still here"}},
		{"early power-off", nil, "echo going >/dev/ttyS0; poweroff -f; sleep 60",
			[]string{"ended before its command did", "going"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			needsMachine(t)
			out, errs, status := run(t, append(append([]string{"--kernel", "6.1"}, tt.args...), "sh", "-c", tt.command)...)
			if status != 125 {
				t.Errorf("status %d, want 125", status)
			}
			for _, want := range tt.says {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in %s (output %q)", want, errs, out)
				}
			}
		})
	}
}

func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown clock fast":         {"--clock", "fast"},
		"unknown cgroup layout none": {"--cgroup", "none"},
		"unknown option --kvm":       {"--kvm"},
	} {
		if _, errs, status := run(t, append(append([]string{"--kernel", "6.1"}, args...), "true")...); status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, errors %q, want %q", args, status, errs, want)
		}
	}
}

func TestNoKernel(t *testing.T) {
	testutil.Needs(t, "root", "qemu-system-x86_64")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no kernel\n"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for kernel, want := range map[string]string{"2.4": "no Debian kernel is known as 2.4", text: "unknown compression"} {
		if _, errs, status := run(t, "--kernel", kernel, "true"); status != 125 || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, errors %q, want %q", kernel, status, errs, want)
		}
	}
}

func TestCgroupLayouts(t *testing.T) {
	for layout, want := range map[string]string{
		"v2-only": "cgroup2 /sys/fs/cgroup; v1 can be mounted: no",
		"v1":      "cgroup /sys/fs/cgroup/net_prio; v1 can be mounted: yes",
		"hybrid":  "cgroup /sys/fs/cgroup/net_prio cgroup2 /sys/fs/cgroup/unified; v1 can be mounted: yes",
	} {
		t.Run(layout, func(t *testing.T) {
			needsMachine(t)
			out, errs, status := run(t, "--kernel", "6.1", "--cgroup", layout, "sh", "-c", `
				printf '%s; ' "$(awk '$3 == "cgroup2" || /net_prio/ {print $3, $2}' /proc/mounts | xargs)"
				mkdir /m; mount -t cgroup -o net_prio x /m 2>/dev/null && echo v1 can be mounted: yes || echo v1 can be mounted: no`)
			if strings.TrimSpace(out) != want || status != 0 {
				t.Errorf("status %d, errors %q, output %q, want %q", status, errs, out, want)
			}
		})
	}
}

// TestVirtualClock: to a guest with a virtual clock a wait is as long as it says, though
// nobody waits for it, and a program takes the same time in every run.
func TestVirtualClock(t *testing.T) {
	t.Parallel() // whoever is beside it
	needsMachine(t)
	const waits = 10 * time.Minute
	begin := time.Now()
	var took [2]int
	for i := range took {
		out, errs, status := run(t, "--kernel", "6.1", "--clock", "virtual", "sh", "-c", fmt.Sprintf(`
			now() { awk '{printf "%%d\n", $1 * 100}' /proc/uptime; }
			a=$(now); sleep %d; b=$(now)
			n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done
			echo $((b - a)) $(($(now) - b))`, int(waits.Seconds())))
		var slept int
		if _, err := fmt.Sscan(out, &slept, &took[i]); err != nil || status != 0 {
			t.Fatalf("status %d, output %q, errors %q", status, out, errs)
		}
		if got := time.Duration(slept) * 10 * time.Millisecond; got < waits || got > waits+time.Second {
			t.Errorf("a wait of %v took %v", waits, got)
		}
	}
	if real := time.Since(begin); real > waits {
		t.Errorf("two waits of %v took %v of real time", waits, real)
	}
	if a, b := took[0], took[1]; max(a, b)-min(a, b) > 2+max(a, b)/20 {
		t.Errorf("one loop took %d and %d ms", 10*a, 10*b)
	}
}

// TestKilled: whoever kills the script has killed the machine.
func TestKilled(t *testing.T) {
	needsMachine(t)
	console := filepath.Join(t.TempDir(), "console")
	mark := fmt.Sprintf("weir.test=%d", os.Getpid())
	cmd := exec.Command("./run", "--kernel", "6.1", "--console", console, "--append", mark, "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	waitFor(t, "the machine to start", func() bool { return len(machines(mark)) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the machine to end", func() bool { return len(machines(mark)) == 0 })
}

// machines lists the processes of qemu whose guest was given the mark.
func machines(mark string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, _ := os.ReadFile(path)
		if bytes.HasPrefix(line, []byte("qemu")) && bytes.Contains(line, []byte(mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
