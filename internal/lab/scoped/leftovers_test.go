package scoped

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// exist lists what there is of a scope.
func exist(t *testing.T, s state.Scope) (there []string) {
	t.Helper()
	for _, path := range []string{s.Cgroup, s.Pins, s.Run} {
		_, err := os.Stat(path)
		if err == nil {
			there = append(there, path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	return there
}

// killed runs a lab until its policy is in force, kills it, and returns its
// scope.
func killed(t *testing.T, name string) (s state.Scope) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", victim, name)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := json.NewDecoder(stdout).Decode(&s)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed: that is its error
	if told != nil {
		t.Fatal(told)
	}
	return s
}

// The next lab takes away what one has left that was killed, cgroups below each other
// included.
func TestKilledLab(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "htb qdisc")
	for _, name := range []string{"priority", "tcp-memory"} {
		s := killed(t, name)
		if there := exist(t, s); len(there) != 3 {
			t.Errorf("%s: a killed lab leaves only %q", name, there)
		}
		eventuallyGone(t, s)
	}
}

// eventuallyGone begins labs until nothing is left of a scope. Its workloads end with it, but
// not at once.
func eventuallyGone(t *testing.T, s state.Scope) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := New("test")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		there := exist(t, s)
		if there == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it still leaves %q", there)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestLivingLabStays(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	first, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	second, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	if there, want := exist(t, first.agent.Scope), []string{first.agent.Scope.Cgroup}; !slices.Equal(there, want) {
		t.Errorf("of a lab that runs there is %q, want %q", there, want)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

func TestDead(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		fmt.Sprintf("%s%d-12", prefix, gone.Process.Pid): true,
		fmt.Sprintf("%s%d", prefix, gone.Process.Pid):    true,
		fmt.Sprintf("%s%d-12", prefix, os.Getpid()):      false,
		prefix + "1-12":  false,
		prefix + "notes": false,
		prefix + "-1-2":  false, // kill(-1) would be everybody
		prefix + "0-2":   false,
	} {
		if got := dead(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
