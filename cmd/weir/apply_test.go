package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// An apply that is interrupted takes back what it has done and says so.
func TestInterruptedApply(t *testing.T) {
	t.Parallel()
	interruptible(t)
	h := newHost(t, "eth0")
	before := h.here.Output("tc", "qdisc", "show", "dev", "eth0")
	cmd := h.command(t, "apply", writePolicy(t, twoWorkloads))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.midway(t, 4)
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.String() != "interrupted: everything is as it was before\n" {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	if after := h.here.Output("tc", "qdisc", "show", "dev", "eth0"); after != before {
		t.Errorf("after it\n%sbefore\n%s", after, before)
	}
	if s := h.status(t); !strings.HasPrefix(s, "nothing is applied") {
		t.Errorf("status: %s", s)
	}
}

// One that could not be taken back says so, though a signal ended it.
func TestInterruptedHalfway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &agent.Agent{Scope: state.Scope{Run: t.TempDir()}}
	c := &cli{}
	var left leftBehind
	if err := c.notApplied(ctx, a, ctx.Err()); errors.As(err, &left) {
		t.Errorf("nothing was begun: %v", err)
	}
	if err := a.Scope.SaveJournal(&state.Journal{Verb: "undo", Step: 1, Steps: 2, Text: "remove programs and tables"}); err != nil {
		t.Fatal(err)
	}
	if err := c.notApplied(ctx, a, ctx.Err()); !errors.As(err, &left) {
		t.Errorf("half of it is there: %v", err)
	}
}

func TestPrintApply(t *testing.T) {
	until := noon.Add(90 * time.Second)
	for _, tt := range []struct {
		report applyReport
		want   string
	}{
		{applyReport{Summary: "No changes.", OK: true, Verdict: "kept: all 2 promises"}, `
No changes.
kept: all 2 promises
`},
		{applyReport{
			Changes: []plan.Difference{{Op: plan.Add, Object: "link eth0", Detail: "prio with 16 classes"}, {Op: plan.Remove, Object: "workload web", Detail: "its packets are nobody's again"}},
			Summary: "Applied: 1 added, 0 changed, 1 removed.", Verdict: "broken: 1 of 2 promises", ConfirmBefore: &until,
		}, `
+ link eth0: prio with 16 classes
- workload web: its packets are nobody's again
Applied: 1 added, 0 changed, 1 removed.
broken: 1 of 2 promises

Taken back at 12:01:30, in 90 s, unless it is confirmed:
  weir confirm     keep it
  weir rollback    take it back now
`},
	} {
		var b strings.Builder
		if err := printApply(&b, painter{}, tt.report, noon); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != strings.TrimPrefix(tt.want, "\n") {
			t.Errorf("got\n%swant%s", got, tt.want)
		}
	}
}

func TestPrintPlan(t *testing.T) {
	var b strings.Builder
	err := printPlan(&b, painter{}, planReport{
		Unfinished:  "apply was broken off at step 3 of 9 (follow new sockets); apply finishes it",
		Differences: []plan.Difference{{Op: plan.Change, Object: "link eth0", Detail: "put link_egress back"}},
		Steps:       []agent.Step{{Text: "build the queue of eth0", Parts: []string{"add htb qdisc"}}, {Text: "follow new sockets"}},
		Summary:     "Plan: 0 to add, 1 to change, 0 to remove.",
	})
	const want = `unfinished: apply was broken off at step 3 of 9 (follow new sockets); apply finishes it
~ link eth0: put link_egress back

Step by step:
   1  build the queue of eth0
        add htb qdisc
   2  follow new sockets

Plan: 0 to add, 1 to change, 0 to remove.
`
	if got := b.String(); err != nil || got != want {
		t.Errorf("%v, got\n%swant\n%s", err, got, want)
	}
}
