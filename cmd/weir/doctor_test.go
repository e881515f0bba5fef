package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

func TestPrintFindings(t *testing.T) {
	for _, tt := range []struct {
		name     string
		findings []plan.Finding
		want     string
	}{
		{"all well", []plan.Finding{{ID: "a", State: plan.FindingOK, Text: "one"}, {ID: "long", State: plan.FindingOK, Text: "two"}}, `
ok    a     one
ok    long  two
`},
		{"nothing to mend", []plan.Finding{{ID: "a", State: plan.FindingOK, Text: "one"}, {ID: "b", State: plan.FindingSkip, Text: "two"}}, `
ok    a  one
skip  b  two
`},
		{"not well", []plan.Finding{
			{ID: "a", State: plan.FindingOK, Text: "one"},
			{ID: "bc", State: plan.FindingFail, Text: "two", Stops: "everything", Mend: "modprobe two"},
			{ID: "d", State: plan.FindingSkip, Text: "three that take more than one line of a narrow terminal", Stops: "all that stands on more than one line"},
		}, `
ok    a   one
fail  bc  two
          stops: everything
          mend:  modprobe two
skip  d   three that take more than one
          line of a narrow terminal
          stops: all that stands on more
                 than one line
1 ok, 0 warn, 1 fail, 1 skip
`},
	} {
		var b strings.Builder
		if err := printFindings(&b, painter{}, 40, tt.findings); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), b.String()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Somebody without privileges is told what could not be looked at, and nothing
// is called ok that was not tried.
func TestDoctorOfNobody(t *testing.T) {
	testutil.Needs(t, "root")
	cmd := weir(t, "doctor", "--json")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != exitFailed || err != nil && exit == nil {
		t.Fatal(err)
	}
	var report doctorReport
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	states := map[string]plan.FindingState{}
	for _, f := range report.Findings {
		states[f.ID] = f.State
	}
	for id, want := range map[string]plan.FindingState{
		"privileges": plan.FindingWarn, "link-hook": plan.FindingSkip, "socket-cache": plan.FindingSkip,
		"processes": plan.FindingSkip, "vrf": plan.FindingSkip, "net-prio": plan.FindingSkip, "strict-order": plan.FindingSkip,
	} {
		if states[id] != want {
			t.Errorf("%s is %q, want %q", id, states[id], want)
		}
	}
}
