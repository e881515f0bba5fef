package traffic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// Two workers watch the way between them; once the one that answers has gone, the session of the
// other is dead and its datagrams are lost.
func TestPassage(t *testing.T) {
	ns := testutil.NewNamespace(t)
	ctx := context.Background()
	near, err := StartWorker(ns.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := StartWorker(ns.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	gone := false
	defer func() {
		if !gone {
			far.Close()
		}
	}()
	if err := far.Echo(ctx, local(7)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(near.Pass(ctx, Where{To: local(7)}, time.Millisecond), near.Pass(ctx, Where{To: local(7)}, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	passed, err := near.Passed(ctx)
	if err != nil || len(passed) != 2 {
		t.Fatalf("%+v, %v", passed, err)
	}
	for _, p := range passed {
		if p.Dead != "" || p.Wait <= 0 || p.Beat.Lost != 0 || p.Beat.Sent == 0 {
			t.Errorf("on a way that stays: %+v", p)
		}
	}
	if err := near.Pass(ctx, Where{To: local(7)}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	gone = true
	if err := far.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(50 * time.Millisecond)
	passed, err = near.Passed(ctx)
	if err != nil || len(passed) != 1 || passed[0].Dead == "" || passed[0].Beat.Lost == 0 {
		t.Errorf("on a way that has ended: %+v, %v", passed, err)
	}
}
