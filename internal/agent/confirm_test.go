package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

const ironPolicy = "  iron: {match: [{port: 4001}], priority: 2}\n"

// guarded lets the bench start guards inside this process. Each says, when it
// has ended, whether it took a change back.
func (b *bench) guarded(t *testing.T) <-chan bool {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	ended := make(chan bool, 100)
	guard := *b.Agent
	b.Detach = func(args ...string) (int, error) {
		if len(args) != 2 || args[0] != Guardian {
			t.Errorf("detach %q", args)
		}
		deadline, err := time.Parse(time.RFC3339Nano, args[1])
		if err != nil {
			return 0, err
		}
		all.Go(func() {
			acted, err := guard.Guard(ctx, deadline)
			if err != nil && ctx.Err() == nil {
				t.Errorf("guard: %v", err)
			}
			ended <- acted
		})
		return os.Getpid(), nil
	}
	return ended
}

func (b *bench) tryUntilConfirmed(t *testing.T, text string, wait time.Duration) (*Applied, error) {
	t.Helper()
	p, err := b.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b.ApplyUntilConfirmed(context.Background(), p, []byte(text), wait)
}

// untilConfirmed applies a policy that waits to be confirmed.
func (b *bench) untilConfirmed(t *testing.T, text string, wait time.Duration) {
	t.Helper()
	done, err := b.tryUntilConfirmed(t, text, wait)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Changes) == 0 || done.Status.Pending == nil || !done.Status.OK {
		t.Fatalf("changed %v, status %+v", done.Changes, done.Status)
	}
}

// inForce ends the test unless a policy is in force, whole, and nothing waits.
func (b *bench) inForce(t *testing.T, text, when string) *Status {
	t.Helper()
	s, err := b.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	if !s.OK || s.Pending != nil || r.Applied == nil || r.Applied.Text != text {
		t.Fatalf("%s: %q, pending %v, %v; applied is\n%+v", when, s.Verdict, s.Pending, s.Differences, r.Applied)
	}
	return s
}

// A guard takes a change back when its time has passed, whatever the clock says:
// to the policy before, not to the one before that.
func TestGuardTakesBack(t *testing.T) {
	b := newBench(t)
	still := time.Now()
	b.Now = func() time.Time { return still }
	ended := b.guarded(t)
	oldest, before, after := b.policyText(ironPolicy), b.policyText(goldPolicy), b.policyText(twoWorkloads)
	b.apply(t, oldest)
	b.apply(t, before)
	b.untilConfirmed(t, after, 100*time.Millisecond)
	if !<-ended {
		t.Fatal("the guard has not acted")
	}
	s := b.inForce(t, before, "after the deadline")
	if s.Rollback == nil || !s.Rollback.Proved || !strings.HasPrefix(s.Rollback.Reason, "no confirmation came before") {
		t.Errorf("status tells %+v", s.Rollback)
	}
	if s.Proved == nil || s.Proved.Verb != "rollback" {
		t.Errorf("proved: %+v", s.Proved)
	}
}

// A guard that fails tries again before it gives up.
func TestGuardTriesAgain(t *testing.T) {
	b := newBench(t)
	failures := 3
	b.Before = func(int, string) error {
		if failures--; failures >= 0 {
			return errors.New("broken off")
		}
		return nil
	}
	ended := b.guarded(t) // breaks off as the bench would
	b.Before = nil
	before := b.policyText(goldPolicy)
	b.apply(t, before)
	b.untilConfirmed(t, b.policyText(ironPolicy), 100*time.Millisecond)
	if !<-ended {
		t.Fatal("the guard has not acted")
	}
	b.inForce(t, before, "after the deadline")
}

// What is confirmed stays, and what is rolled back goes; the guard of both ends.
func TestConfirmOrRollback(t *testing.T) {
	b := newBench(t)
	ended := b.guarded(t)
	before, after := b.policyText(goldPolicy), b.policyText(ironPolicy)
	for _, c := range []struct {
		decide func() error
		want   string
	}{
		{func() error { return b.Rollback(context.Background(), "the test says so") }, before},
		{b.Confirm, after},
	} {
		b.apply(t, before)
		b.untilConfirmed(t, after, time.Hour)
		if _, err := b.tryApply(before); !errors.Is(err, ErrPending) {
			t.Errorf("an apply meanwhile: %v", err)
		}
		if err := c.decide(); err != nil {
			t.Fatal(err)
		}
		if <-ended {
			t.Error("the guard has acted")
		}
		if err := c.decide(); !errors.Is(err, ErrNothingPending) {
			t.Errorf("a second time: %v", err)
		}
		b.inForce(t, c.want, "after the decision")
	}
}

// Where there is nothing to do, no guard is started and nothing waits.
func TestNothingToConfirm(t *testing.T) {
	b := newBench(t)
	text := b.policyText(goldPolicy)
	b.apply(t, text)
	b.Detach = func(args ...string) (int, error) {
		t.Errorf("detach %q", args)
		return 0, errors.New("not wanted")
	}
	done, err := b.tryUntilConfirmed(t, text, time.Hour)
	if err != nil || len(done.Changes) != 0 || done.Status.Pending != nil {
		t.Errorf("%+v, %v", done, err)
	}
}

// Without a guard nothing is changed, and nothing is left of the attempt.
func TestGuardThatDoesNotStart(t *testing.T) {
	b := newBench(t)
	before := b.dump(t)
	b.Detach = func(...string) (int, error) {
		cmd := exec.Command("true") // ends without having watched
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		t.Cleanup(func() { _ = cmd.Wait() })
		return cmd.Process.Pid, nil
	}
	if _, err := b.tryUntilConfirmed(t, b.policyText(goldPolicy), time.Hour); err == nil || !strings.Contains(err.Error(), "start the guard") {
		t.Errorf("got %v", err)
	}
	b.Detach = nil
	if _, err := b.tryUntilConfirmed(t, b.policyText(goldPolicy), time.Hour); err == nil {
		t.Error("without anything to start it with: no error")
	}
	b.sameAs(t, before, "an apply without a guard")
	if files, _ := os.ReadDir(b.Scope.Run); len(files) != 0 {
		for _, f := range files {
			if f.Name() == "state.json" || f.Name() == "journal.json" {
				t.Errorf("%s is left", f.Name())
			}
		}
	}
}

// TestKilledUntilConfirmed kills an apply that waits to be confirmed at every
// place: it can be rolled back to what was in force, and status says that nobody
// does it.
func TestKilledUntilConfirmed(t *testing.T) {
	testutil.Proves(t, testutil.Undo)
	b := newBench(t)
	oldest, before, after := b.policyText(ironPolicy), b.policyText(goldPolicy), b.policyText(twoWorkloads)
	for place := 1; ; place += stride(longStride) {
		b.apply(t, oldest)
		b.apply(t, before)
		if !b.suffer(t, victim{Verb: "confirm", Policy: after, KillAt: place}) {
			break
		}
		b.passes(t)
		s, err := b.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.Pending == nil || !strings.Contains(strings.Join(s.Warnings, "\n"), "its guard has ended") {
			t.Fatalf("place %d: pending %v, warnings %q", place, s.Pending, s.Warnings)
		}
		if err := b.Confirm(); !errors.Is(err, ErrUnfinished) {
			t.Fatalf("place %d: half a change was confirmed: %v", place, err)
		}
		if err := b.Rollback(context.Background(), "its guard is gone"); err != nil {
			t.Fatalf("place %d: rollback: %v", place, err)
		}
		b.inForce(t, before, "after the rollback")
	}
	if err := b.Rollback(context.Background(), "the test is over"); err != nil {
		t.Fatal(err)
	}
}

// TestKilledRollback kills a rollback at every place: it can be done again.
func TestKilledRollback(t *testing.T) {
	testutil.Proves(t, testutil.Undo)
	b := newBench(t)
	before, after := b.policyText(goldPolicy), b.policyText(ironPolicy)
	b.guarded(t)
	b.apply(t, before)
	for place := 1; ; place += stride(longStride) {
		b.untilConfirmed(t, after, time.Hour)
		if !b.suffer(t, victim{Verb: "rollback", KillAt: place}) {
			break
		}
		b.passes(t)
		s, err := b.Status(context.Background())
		if err != nil || s.Unfinished == nil || s.Unfinished.Verb != "rollback" || s.Pending == nil {
			t.Fatalf("place %d: status %+v, %v", place, s, err)
		}
		if err := b.Rollback(context.Background(), "again"); err != nil {
			t.Fatalf("place %d: rollback: %v", place, err)
		}
		b.inForce(t, before, "after the second rollback")
	}
	b.inForce(t, before, "after an unbroken rollback")
}

// A change that failed and could not be taken back stays pending: the guard, or
// somebody, tries again.
func TestUndoThatFails(t *testing.T) {
	b := newBench(t)
	b.guarded(t)
	before := b.policyText(goldPolicy)
	b.apply(t, before)
	n := 0
	b.Before = func(int, string) error {
		if n++; n > 5 {
			return errors.New("broken off")
		}
		return nil
	}
	_, err := b.tryUntilConfirmed(t, b.policyText(ironPolicy), time.Hour)
	b.Before = nil
	if err == nil || errors.Is(err, ErrRolledBack) {
		t.Fatalf("got %v", err)
	}
	if s, err := b.Status(context.Background()); err != nil || s.Pending == nil || s.Unfinished == nil || s.Unfinished.Verb != "undo" {
		t.Fatalf("status %+v, %v", s, err)
	}
	if err := b.Rollback(context.Background(), "the test says so"); err != nil {
		t.Fatal(err)
	}
	b.inForce(t, before, "after the rollback")
}
