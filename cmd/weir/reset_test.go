package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A reset that is interrupted goes on to its end.
func TestInterruptedReset(t *testing.T) {
	t.Parallel()
	interruptible(t)
	h := newHost(t, "eth0")
	before := h.here.Output("tc", "qdisc", "show", "dev", "eth0")
	if code, _ := h.weir(t, "apply", writePolicy(t, twoWorkloads)); code != 0 {
		t.Fatalf("apply: exit code %d", code)
	}
	cmd := h.command(t, "reset")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.midway(t, 1)
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("reset: %v", err)
	}
	if after := h.here.Output("tc", "qdisc", "show", "dev", "eth0"); after != before {
		t.Errorf("after it\n%sbefore\n%s", after, before)
	}
	if s := h.status(t); !strings.HasPrefix(s, "nothing is applied") {
		t.Errorf("status: %s", s)
	}
}
