package scoped

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/report"
	"github.com/weir-net/weir/internal/testutil"
)

// The vrf lab, as weir runs it: no claim of it depends on how busy the machine is. The host's own files are not touched.
func TestVRFLab(t *testing.T) {
	testutil.Needs(t, "vrf link", "cgroup2", "getent")
	before, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	c, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	r, err := lab.Run(context.Background(), "vrf", lab.Options{Controller: c, Repetitions: 1, Version: "test"})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	if err := report.Table(t.Output(), r, report.Style{Width: 100}); err != nil {
		t.Error(err)
	}
	for _, claim := range r.Claims {
		if claim.Kept == nil || !*claim.Kept {
			t.Errorf("not shown: %s %s", claim.Text, claim.Evidence)
		}
	}
	for _, arm := range r.Arms {
		for _, name := range []string{"lookup_ok", "connect_ok", "session_survived", "gap_ms", "gap_ms_ipv6", "session_wait_ms", "session_wait_ms_ipv6"} {
			if m := arm.Metrics[name]; m.N != 1 {
				t.Errorf("%s, %s: %+v", arm.Name, name, m)
			}
		}
	}
	after, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) || string(after) != string(before) {
		t.Errorf("/etc/resolv.conf was %q and is %q, %v", before, after, err)
	}
	if _, err := os.Stat("/etc/weir/vrf/mgmt"); err == nil {
		t.Error("the host has files of the lab's VRF")
	}
	if there := exist(t, c.agent.Scope); there != nil {
		t.Errorf("it left %q", there)
	}
}

// A lab that is killed while its link is in the VRF leaves nothing that the next one does not take
// away, its processes included; one that is interrupted there leaves nothing.
func TestKilledVRFLab(t *testing.T) {
	testutil.Needs(t, "vrf link", "cgroup2", "getent")
	s := killed(t, "vrf")
	if there := exist(t, s); len(there) != 3 {
		t.Errorf("a killed lab leaves %q", there)
	}
	eventuallyGone(t, s)

	c, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err = lab.Run(ctx, "vrf", lab.Options{Controller: c, Repetitions: 1, Progress: func(step string) {
		if strings.HasSuffix(step, "vrf_fixed") {
			cancel(enough)
		}
	}})
	if !errors.Is(err, enough) {
		t.Errorf("interrupted, it says %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if there := exist(t, c.agent.Scope); there != nil {
		t.Errorf("interrupted, it leaves %q", there)
	}
}
