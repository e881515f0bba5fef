package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// A broken-off change is taken back from within a second after its deadline on,
// though everything that its caller started was killed, and those who were absent hear
// of it.
func TestGuardOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	h := newHost(t, "eth0")
	file := writePolicy(t, twoWorkloads)
	before := h.here.Output("tc", "qdisc", "show", "dev", "eth0")
	// Some commands come before the deadline, however slow the machine is.
	start := time.Now()
	h.status(t)
	h.applyAndKill(t, file, max(shortestWait, 20*time.Since(start)))
	pending := h.record(t).Pending
	if pending == nil {
		t.Fatal("nothing is pending")
	}
	if code, _ := h.weir(t, "apply", file); code != exitFailed {
		t.Errorf("a second apply meanwhile: exit code %d", code)
	}
	if code, _ := h.weir(t, "confirm"); code != exitFailed {
		t.Errorf("a confirmation of half a change: exit code %d", code)
	}
	code, out := h.weir(t, "status")
	if code != exitBroken || !strings.HasPrefix(string(out), "unfinished: apply") || !strings.Contains(string(out), "Taken back at") {
		t.Errorf("status of half a change: exit code %d\n%s", code, out)
	}
	if h.record(t).Pending == nil {
		t.Error("status has confirmed")
	}
	time.Sleep(time.Until(pending.Deadline))
	h.until(t, func() bool { return strings.HasPrefix(h.status(t), "nothing is applied") })
	if late := h.record(t).Rollback.When.Sub(pending.Deadline); late > time.Second {
		t.Errorf("the guard began %s after the deadline", late)
	}
	if after := h.here.Output("tc", "qdisc", "show", "dev", "eth0"); after != before {
		t.Errorf("after the rollback\n%sbefore\n%s", after, before)
	}
	if s := h.status(t); !strings.Contains(s, "rolled back at") || !strings.Contains(s, "no confirmation came") {
		t.Errorf("status tells of no rollback:\n%s", s)
	}
	h.until(t, func() bool { return !alive(pending.Guard) })
	terminal, log := h.heard()
	for where, text := range map[string]string{"terminal": terminal, "log": log} {
		if !strings.Contains(text, "the change was rolled back: no confirmation came before") {
			t.Errorf("the %s heard %q", where, text)
		}
	}
	if code, _ := h.weir(t, "confirm"); code != exitRolledBack {
		t.Errorf("a confirmation that comes too late: exit code %d", code)
	}
}

// Confirmation keeps the change and ends its guard; reading does not confirm.
func TestConfirm(t *testing.T) {
	t.Parallel()
	h := newHost(t, "eth0")
	file := writePolicy(t, twoWorkloads)
	if code, out := h.weir(t, "apply", "--confirm", "10m", file); code != 0 || !strings.Contains(string(out), "weir rollback    take it back now") {
		t.Fatalf("apply: exit code %d\n%s", code, out)
	}
	for _, read := range [][]string{{"status"}, {"plan", file}, {"explain", "--pid", "1"}, {"sockets"}, {"top"}, {"doctor"}, {"check", file}} {
		h.weir(t, read...)
	}
	pending := h.record(t).Pending
	if pending == nil {
		t.Fatal("something that reads has confirmed")
	}
	if code, out := h.weir(t, "confirm"); code != 0 || !strings.HasPrefix(string(out), "Kept.\nkept: all 2 promises") {
		t.Errorf("confirm: exit code %d\n%s", code, out)
	}
	h.until(t, func() bool { return !alive(pending.Guard) })
	if s := h.status(t); !strings.HasPrefix(s, "kept: all 2 promises") || strings.Contains(s, "Taken back") {
		t.Errorf("status after the confirmation:\n%s", s)
	}
	if code, _ := h.weir(t, "confirm"); code != exitFailed {
		t.Errorf("a second confirmation: exit code %d", code)
	}
	if code, _ := h.weir(t, "rollback"); code != exitFailed {
		t.Errorf("a rollback of what is confirmed: exit code %d", code)
	}
}

// The guard is in no session but its own and holds nothing of its caller's. A
// hangup does nothing to it; told to end, it takes the change back first.
func TestGuardIsDetached(t *testing.T) {
	t.Parallel()
	h := newHost(t, "eth0")
	file := writePolicy(t, twoWorkloads)
	if code, _ := h.weir(t, "apply", "--confirm", "5m", file); code != 0 {
		t.Fatalf("apply: exit code %d", code)
	}
	guard := h.record(t).Pending.Guard
	if session, err := unix.Getsid(guard); err != nil || session != guard {
		t.Errorf("the guard %d is in session %d, %v", guard, session, err)
	}
	for fd := range 3 {
		if target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", guard, fd)); target != "/dev/null" {
			t.Errorf("descriptor %d of the guard is %s", fd, target)
		}
	}
	h.until(t, func() bool { return ignoresHangup(guard) })
	_ = unix.Kill(guard, unix.SIGHUP)
	time.Sleep(300 * time.Millisecond)
	if !alive(guard) || h.record(t).Pending == nil {
		t.Fatal("a hangup ended the guard")
	}
	_ = unix.Kill(guard, unix.SIGTERM)
	h.until(t, func() bool { return !alive(guard) })
	if s := h.status(t); !strings.HasPrefix(s, "nothing is applied") || !strings.Contains(s, "its guard was ended") {
		t.Errorf("status after the guard was ended:\n%s", s)
	}
}

// An apply that changes nothing, or that is refused, leaves no guard behind.
func TestGuardOfNothingEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t, "eth0")
	file := writePolicy(t, twoWorkloads)
	h.weir(t, "apply", file)
	if code, out := h.weir(t, "apply", "--confirm", "5m", file); code != 0 || !strings.HasPrefix(string(out), "No changes.") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	h.until(t, func() bool { return h.processes("weir\x00guard\x00") == 0 })
	if s := h.status(t); !strings.HasPrefix(s, "kept") || strings.Contains(s, "rolled back") {
		t.Errorf("the guard has acted:\n%s", s)
	}
}

// A rollback returns to the policy before.
func TestRollback(t *testing.T) {
	t.Parallel()
	h := newHost(t, "eth0")
	first, second := writePolicy(t, twoWorkloads), writePolicy(t, strings.Replace(twoWorkloads, "100Mbit", "50Mbit", 1))
	h.weir(t, "apply", first)
	before := testutil.Lasting(h.here.Output("tc", "class", "show", "dev", "eth0"))
	h.weir(t, "apply", "--confirm", "5m", second)
	if now := h.here.Output("tc", "class", "show", "dev", "eth0"); !strings.Contains(now, "50Mbit") {
		t.Fatalf("the second policy is not in force:\n%s", now)
	}
	if code, out := h.weir(t, "rollback"); code != 0 || !strings.HasPrefix(string(out), "Rolled back.\nkept: all 2 promises") {
		t.Errorf("rollback: exit code %d\n%s", code, out)
	}
	if after := testutil.Lasting(h.here.Output("tc", "class", "show", "dev", "eth0")); after != before {
		t.Errorf("after the rollback\n%sbefore\n%s", after, before)
	}
}

// applyAndKill kills an apply and its process group when it is half done.
func (h *testHost) applyAndKill(t *testing.T, file string, confirm time.Duration) {
	t.Helper()
	cmd := h.command(t, "apply", "--confirm", confirm.String(), file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.midway(t, 4)
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := os.Stat(filepath.Join(h.scope.Run, "journal.json")); err != nil {
		t.Fatalf("the apply was not half done: %v", err)
	}
}

// midway returns when a change has come to one of its steps.
func (h *testHost) midway(t *testing.T, step int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var j state.Journal
		text, _ := os.ReadFile(filepath.Join(h.scope.Run, "journal.json"))
		_ = json.Unmarshal(text, &j)
		if j.Step >= step {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the change does not begin")
		}
	}
}

func writePolicy(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *testHost) record(t *testing.T) *state.Record {
	t.Helper()
	r, err := h.scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (h *testHost) status(t *testing.T) string {
	t.Helper()
	_, out := h.weir(t, "status")
	return string(out)
}

// alive reports whether a process runs; one that has ended and was not waited
// for does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func ignoresHangup(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		var mask uint64
		if n, _ := fmt.Sscanf(line, "SigIgn: %x", &mask); n == 1 {
			return mask&(1<<(unix.SIGHUP-1)) != 0
		}
	}
	return false
}
